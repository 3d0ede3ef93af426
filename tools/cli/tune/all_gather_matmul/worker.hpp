// One rank of `tutti tune all_gather_matmul`: finds the fastest algorithm at each size, together
// with the others.
#pragma once

#include "bench/rank.hpp"
#include "tune/all_gather_matmul/options.hpp"

namespace tutti::cli {

// Reports what is Skipped and Dropped, and a TunedAllGatherMatmul for each size. `options` must
// outlive it.
RankWork tune_all_gather_matmul_work(const TuneAllGatherMatmulOptions& options);

}  // namespace tutti::cli
