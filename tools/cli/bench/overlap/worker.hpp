// One rank of `tutti bench overlap`: measures each phase with each row, and checks results.
#pragma once

#include "bench/overlap/options.hpp"
#include "bench/rank.hpp"

namespace tutti::cli {

// Reports an OverlapMeasurement per phase and row. `options` must outlive it.
RankWork overlap_work(const OverlapOptions& options);

// How an injected defect names the matmul, where it would name an algorithm.
inline constexpr std::string_view kMatmulName = "matmul";

}  // namespace tutti::cli
