// What is measured at one size of all_gather_matmul, and what becomes of it. Values alone.
#pragma once

#include <span>
#include <vector>

#include "bench/all_gather_matmul/mover_options.hpp"
#include "planning/all_gather_matmul.hpp"

namespace tutti::cli {

// Another algorithm takes the place of unfused if it takes at most so much of its time: what is
// less may be noise, or a neighbouring size.
inline constexpr double kFasterThanUnfused = 0.97;

// Unfused, then each algorithm with its options; `chosen` is not varied. On the host a pipeline has
// one stream, whatever their number.
std::vector<AllGatherMatmulWay> ways_to_measure(
    std::span<const AllGatherMatmulAlgorithm> algorithms, Backend backend,
    const MoverOptions& chosen);

struct MeasuredWay {
  AllGatherMatmulWay way;
  double time_us = 0;  // median
  int samples = 0;
};

// The fastest `count` of them and unfused, in the order of the list.
std::vector<std::size_t> finalists(std::span<const MeasuredWay> measured, std::size_t count);

// Way, times, runner-up and samples; the rest is not filled in. `measured` begins with unfused. Of
// those within 2 % of the fastest the first in the list.
AllGatherMatmulEntry decide(std::span<const MeasuredWay> measured);

}  // namespace tutti::cli
