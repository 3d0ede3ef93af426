// The kernels of the calibration. A spin ends by a clock, whatever the other side does.
#include <cuda/atomic>

#include <cstdint>

#include "bench/calibration.hpp"

namespace tutti::cli {
namespace {

__device__ std::uint64_t nanoseconds() {
  std::uint64_t time;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  return time;
}

__global__ void empty() {}

// One thread on each of two GPUs: waits until `mine` shows k, then writes k (or k + 1, for the side
// that begins) to `theirs`. Ends early, with `result` left at 0, when `limit_ns` has passed.
__global__ void ping(Ping side) {
  using Flag = cuda::atomic_ref<std::uint32_t, cuda::thread_scope_system>;
  const std::uint64_t end = nanoseconds() + side.limit_ns;
  std::uint64_t start = 0;
  for (std::uint32_t k = 1; k <= side.rounds; ++k) {
    if (side.begins) Flag(*side.theirs).store(k, cuda::memory_order_release);
    while (Flag(*side.mine).load(cuda::memory_order_acquire) < k) {
      if (nanoseconds() > end) return;
    }
    if (!side.begins) Flag(*side.theirs).store(k, cuda::memory_order_release);
    if (k == 1) start = nanoseconds();  // both sides run from here on
  }
  *side.result = nanoseconds() - start;
}

}  // namespace

const void* empty_kernel() { return reinterpret_cast<const void*>(&empty); }
const void* ping_kernel() { return reinterpret_cast<const void*>(&ping); }

}  // namespace tutti::cli
