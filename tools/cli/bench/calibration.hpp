// What times move with from machine to machine, measured beside every run: on GPUs those of small
// sizes, on the host those of large ones.
#pragma once

#include <cstdint>

#include "bench/record.hpp"
#include "drivers/cuda.hpp"

namespace tutti::cli {

// The gap between empty kernels in a graph on GPU 0, and the one-way time of a flag between GPUs 0
// and 1 (zero where there is one GPU or no peer access). At most a few seconds.
// kUnavailable in a build without CUDA.
Result<Calibration> calibrate(CudaDriver& cuda);

// One thread's memcpy of `bytes`, again and again between the same two buffers: the median of at
// most half a second.
Calibration calibrate_host(std::size_t bytes);

// One side of a ping between two GPUs.
struct Ping {
  std::uint32_t* mine;    // this side's word
  std::uint32_t* theirs;  // the other side's
  std::uint64_t* result;  // nanoseconds of all rounds but the first; left as it is on a time-out
  std::uint32_t rounds;
  bool begins;
  std::uint64_t limit_ns;
};

// Kernels of calibration.cu, described there; null in a build without CUDA.
const void* empty_kernel();  // __global__ void()
const void* ping_kernel();   // __global__ void(Ping)

}  // namespace tutti::cli
