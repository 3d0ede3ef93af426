// How long the ways to run a call take on a GPU, with matrices that come from memory.
#pragma once

#include <chrono>
#include <span>

#include "drivers/cuda.hpp"
#include "matmul/contender.hpp"

namespace tutti {

struct MatmulTiming {
  Stream stream = nullptr;  // in which contenders enqueue
  // Memory that is written before each run: the L2 then holds nothing of the matrices, and the host
  // has time to enqueue the run before it begins.
  CudaAddress evicting = nullptr;
  std::size_t evicting_bytes = 0;
  std::chrono::milliseconds patience = std::chrono::seconds(60);  // with all that the stream does
};

// Fills in `part_us`, or `failure` where a run could not be enqueued. All run in turn, in order and
// then in reverse order, kLeastTimedRounds times after kWarmingRounds, and more often while that
// takes less than kEnoughTiming. After kTimeout, the stream still uses what the runs use.
Status time_contenders(CudaDriver& cuda, const MatmulTiming& timing,
                       std::span<MatmulContender> contenders);

inline constexpr int kWarmingRounds = 2;  // the first of them may load kernels
inline constexpr int kLeastTimedRounds = 7, kMostTimedRounds = 50;
inline constexpr std::chrono::milliseconds kEnoughTiming{100};

}  // namespace tutti
