#include "bench/overlap/arithmetic.hpp"
#include "bench/overlap/clocks.hpp"
#include "bench/overlap/kernels.hpp"

namespace tutti::cli {
namespace {

__global__ void __launch_bounds__(kArithmeticThreads) arithmetic(Arithmetic work) {
  const std::uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  std::uint32_t x = *work.seed + thread;
#pragma unroll 16
  for (std::uint32_t step = 0; step < work.steps; ++step) x = x * work.factor + work.addend;
  work.results[thread] = x;
}

// The counter of cycles and the time, of the multiprocessor where the block happens to be.
__global__ void read_clocks(ClockReading* readings) {
  std::uint32_t multiprocessor;
  ClockReading now;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now.nanoseconds));
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(now.cycles));
  if (multiprocessor < kMostMultiprocessors) readings[multiprocessor] = now;
}

// Lets so much time pass.
__global__ void hold(std::uint64_t nanoseconds) {
  std::uint64_t begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - begin < nanoseconds);
}

}  // namespace

const void* arithmetic_kernel() { return reinterpret_cast<const void*>(&arithmetic); }
const void* clock_kernel() { return reinterpret_cast<const void*>(&read_clocks); }
const void* hold_kernel() { return reinterpret_cast<const void*>(&hold); }

}  // namespace tutti::cli
