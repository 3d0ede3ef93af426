// One rank of a benchmark: measures every algorithm at every size, and checks results.
#pragma once

#include "bench/options.hpp"
#include "bench/rank.hpp"

namespace tutti::cli {

// Reports a Measurement per size and algorithm. `options` must outlive it.
RankWork bench_work(const BenchOptions& options);

}  // namespace tutti::cli
