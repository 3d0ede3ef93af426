// One rank of `tutti bench all_gather_matmul`: measures every algorithm with every setting, and
// checks results.
#pragma once

#include "bench/all_gather_matmul/ranks/options.hpp"
#include "bench/rank.hpp"

namespace tutti::cli {

// Reports a GatherMatmulMeasurement per setting and row. `options` must outlive it.
RankWork gather_matmul_work(const GatherMatmulOptions& options);

}  // namespace tutti::cli
