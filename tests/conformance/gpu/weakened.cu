#include <cuda_runtime.h>

#include "algorithms/all_reduce/multicast_one_shot.hpp"
#include "algorithms/all_reduce/multicast_two_shot.hpp"
#include "algorithms/all_reduce/one_shot.hpp"
#include "algorithms/all_reduce/one_shot_push.hpp"
#include "algorithms/all_reduce/ring.hpp"
#include "algorithms/all_reduce/two_shot.hpp"
#include "algorithms/all_reduce/two_shot_push.hpp"
#include "algorithms/all_reduce/two_shot_staged.hpp"
#include "algorithms/all_reduce/two_shot_tma.hpp"
#include "algorithms/between_copies.hpp"
#include "conformance/gpu/weakened.hpp"
#include "device/multicast/multicast_team.cuh"
#include "device/nvlink_peer/bulk_team.cuh"
#include "device/nvlink_peer/nvlink_team.cuh"
#include "device/nvlink_peer/packet_team.cuh"
#include "device/nvlink_peer/ring_team.cuh"

namespace tutti::test {
namespace {

// Ranks that are threads of one process and share a GPU share these, too: each has its own.
__device__ CudaWeakening device_weakenings[kMaxCudaRanks];

__device__ int& rank_of_block() {
  __shared__ int rank;
  return rank;
}
__device__ const CudaWeakening& weakening() { return device_weakenings[rank_of_block()]; }
// First in each kernel, by all threads.
__device__ void weaken_as(int rank) {
  if (threadIdx.x == 0) rank_of_block() = rank;
  __syncthreads();
}

// Bounded by what is asked for, which is at most a few milliseconds.
__device__ void delay(std::uint32_t ns) {
  if (ns == 0) return;
  const std::uint64_t end = global_timer_ns() + ns;
  while (global_timer_ns() < end) __nanosleep(200);
}

__device__ bool has(std::uint32_t mask, int barrier) { return (mask >> barrier & 1u) != 0; }

struct Weakened {
  static __device__ bool skip_barrier(int barrier) {
    return has(weakening().skip_barrier, barrier);
  }
  static __device__ bool release(int barrier) { return !has(weakening().no_release, barrier); }
  // Asked by the threads that wait, before they look at the flags for the first time.
  static __device__ bool acquire(int barrier) {
    delay(weakening().before_wait_ns[barrier % CudaWeakening::kBarriers]);
    return !has(weakening().no_acquire, barrier);
  }
  static __device__ void before_barrier(int, int barrier) {
    delay(weakening().before_arrival_ns[barrier % CudaWeakening::kBarriers]);
  }
  static __device__ void before_push() { delay(weakening().before_arrival_ns[0]); }
  static __device__ bool polls() { return !weakening().no_polls; }
  static __device__ bool empties() { return !weakening().no_emptying; }
  static __device__ bool waits_for_chunks() { return !weakening().no_polls; }
  static __device__ bool releases_chunks() { return !has(weakening().no_release, 1); }
};

using SumOfFloats = Reduction<float, Sum>;

__global__ void __launch_bounds__(kMaxThreads, 1)
    weakened_one_shot(const __grid_constant__ KernelArgs work) {
  weaken_as(work.rank);
  NvlinkTeam<Weakened> team(work);
  AllReduceOneShot::run<SumOfFloats>(team, work);
}

__global__ void __launch_bounds__(kMaxThreads, 1)
    weakened_two_shot(const __grid_constant__ KernelArgs work) {
  weaken_as(work.rank);
  NvlinkTeam<Weakened> team(work);
  AllReduceTwoShot::run<SumOfFloats>(team, work);
}

__global__ void __launch_bounds__(kMaxThreads, 1)
    weakened_multicast_one_shot(const __grid_constant__ KernelArgs work) {
  weaken_as(work.rank);
  BasicMulticastTeam<Weakened> team(work);
  AllReduceMulticastOneShot::run<SumOfFloats>(team, work);
}

__global__ void __launch_bounds__(kMaxThreads, 1)
    weakened_multicast_two_shot(const __grid_constant__ KernelArgs work) {
  weaken_as(work.rank);
  BasicMulticastTeam<Weakened> team(work);
  AllReduceMulticastTwoShot::run<SumOfFloats>(team, work);
}

__global__ void __launch_bounds__(kMaxThreads, 1)
    weakened_one_shot_push(const __grid_constant__ KernelArgs work) {
  weaken_as(work.rank);
  PacketTeam<0, Weakened> team(work);
  AllReduceOneShotPush::run<SumOfFloats>(team, work);
}

__global__ void __launch_bounds__(kMaxThreads, 1)
    weakened_two_shot_push(const __grid_constant__ KernelArgs work) {
  weaken_as(work.rank);
  PacketTeam<0, Weakened> team(work);
  AllReduceTwoShotPush::run<SumOfFloats>(team, work);
}

__global__ void __launch_bounds__(kMaxThreads, 1)
    weakened_two_shot_staged(const __grid_constant__ KernelArgs work) {
  weaken_as(work.rank);
  NvlinkTeam<Weakened> team(work);
  AllReduceTwoShotStaged::run<SumOfFloats>(team, work);
}

__global__ void __launch_bounds__(kMaxThreads, 1)
    weakened_two_shot_tma(const __grid_constant__ KernelArgs work) {
  weaken_as(work.rank);
  __shared__ BulkMoves moves;
  BulkTeam<Weakened> team(work, moves);
  AllReduceTwoShotTma::run<SumOfFloats>(team, work);
}

__global__ void __launch_bounds__(kMaxThreads, 1)
    weakened_between_copies(const __grid_constant__ KernelArgs work) {
  weaken_as(work.rank);
  // It has one barrier at most: without that there is no epoch to keep.
  KernelArgs part = work;
  part.meets = work.meets && !Weakened::skip_barrier(0);
  NvlinkTeam<Weakened> team(part);
  BetweenCopies::run<SumOfFloats>(team, part);
}

__global__ void __launch_bounds__(kMaxThreads, 1)
    weakened_ring(const __grid_constant__ KernelArgs work) {
  weaken_as(work.rank);
  __shared__ RingTeam<Weakened>::Progress progress;
  RingTeam<Weakened> team(work, progress);
  AllReduceRing::run<SumOfFloats>(team, work);
}

}  // namespace

CudaKernel weakened_kernel(const Algorithm& row) {
  const struct {
    CudaKernel (*entry)(DataType, OpKind, int);
    void (*weakened)(KernelArgs);
  } kernels[] = {
      {AllReduceOneShot::cuda, weakened_one_shot},
      {AllReduceTwoShot::cuda, weakened_two_shot},
      {AllReduceMulticastOneShot::cuda, weakened_multicast_one_shot},
      {AllReduceMulticastTwoShot::cuda, weakened_multicast_two_shot},
      {AllReduceOneShotPush::cuda, weakened_one_shot_push},
      {AllReduceTwoShotPush::cuda, weakened_two_shot_push},
      {AllReduceTwoShotStaged::cuda, weakened_two_shot_staged},
      {AllReduceTwoShotTma::cuda, weakened_two_shot_tma},
      {BetweenCopies::cuda, weakened_between_copies},
      {AllReduceRing::cuda, weakened_ring},
  };
  for (const auto& [entry, weakened] : kernels) {
    if (row.cuda == entry) return reinterpret_cast<CudaKernel>(weakened);
  }
  return nullptr;
}

bool set_weakening(int rank, const CudaWeakening& weakening, Stream stream) {
  const std::size_t offset = static_cast<std::size_t>(rank) * sizeof weakening;
  return cudaMemcpyToSymbolAsync(device_weakenings, &weakening, sizeof weakening, offset,
                                 cudaMemcpyHostToDevice, stream) == cudaSuccess;
}

}  // namespace tutti::test
