// Kernels of kernels.cu, described there; null in a build without CUDA.
#pragma once

namespace tutti::cli {

const void* arithmetic_kernel();  // __global__ void(Arithmetic)
const void* clock_kernel();       // __global__ void(ClockReading*)
const void* hold_kernel();        // __global__ void(std::uint64_t nanoseconds)

}  // namespace tutti::cli
