// What small sizes move with from machine to machine, measured beside every run on GPUs.
#pragma once

#include "bench/record.hpp"
#include "drivers/cuda.hpp"

namespace tutti::cli {

// The gap between empty kernels in a graph on GPU 0, and the one-way time of a flag between GPUs 0
// and 1 (zero where there is one GPU or no peer access). At most a few seconds.
// kUnavailable in a build without CUDA.
Result<Calibration> calibrate(CudaDriver& cuda);

// Kernels of calibration.cu, described there; null in a build without CUDA.
const void* empty_kernel();
const void* ping_kernel();

}  // namespace tutti::cli
