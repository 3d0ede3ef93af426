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
#include "algorithms/team_stages.hpp"
#include "conformance/gpu/weakened.hpp"
#include "transport/multicast/multicast_team.cuh"
#include "transport/nvlink_peer/bulk_team.cuh"
#include "transport/nvlink_peer/nvlink_team.cuh"
#include "transport/nvlink_peer/packet_team.cuh"
#include "transport/nvlink_peer/ring_team.cuh"

namespace tutti::test {
namespace {

__device__ CudaWeakening device_weakening;

// Bounded by what is asked for, which is at most a few milliseconds.
__device__ void delay(std::uint32_t ns) {
  if (ns == 0) return;
  const std::uint64_t end = global_timer_ns() + ns;
  while (global_timer_ns() < end) __nanosleep(200);
}

__device__ bool has(std::uint32_t mask, int barrier) { return (mask >> barrier & 1u) != 0; }

struct Weakened {
  static __device__ bool skip_barrier(int barrier) {
    return has(device_weakening.skip_barrier, barrier);
  }
  static __device__ bool release(int barrier) { return !has(device_weakening.no_release, barrier); }
  // Asked by the threads that wait, before they look at the flags for the first time.
  static __device__ bool acquire(int barrier) {
    delay(device_weakening.before_wait_ns[barrier % CudaWeakening::kBarriers]);
    return !has(device_weakening.no_acquire, barrier);
  }
  static __device__ void before_barrier(int, int barrier) {
    delay(device_weakening.before_arrival_ns[barrier % CudaWeakening::kBarriers]);
  }
  static __device__ void before_push() { delay(device_weakening.before_arrival_ns[0]); }
  static __device__ bool polls() { return !device_weakening.no_polls; }
  static __device__ bool empties() { return !device_weakening.no_emptying; }
  static __device__ bool waits_for_chunks() { return !device_weakening.no_polls; }
  static __device__ bool releases_chunks() { return !has(device_weakening.no_release, 1); }
};

using SumOfFloats = Reduction<float, Sum>;

__global__ void __launch_bounds__(kMaxThreads, 1)
    weakened_one_shot(const __grid_constant__ Work work) {
  NvlinkTeam<Weakened> team(work);
  all_reduce_one_shot<SumOfFloats>(team, work);
}

__global__ void __launch_bounds__(kMaxThreads, 1)
    weakened_two_shot(const __grid_constant__ Work work) {
  NvlinkTeam<Weakened> team(work);
  all_reduce_two_shot<SumOfFloats>(team, work);
}

__global__ void __launch_bounds__(kMaxThreads, 1)
    weakened_multicast_one_shot(const __grid_constant__ Work work) {
  BasicMulticastTeam<Weakened> team(work);
  all_reduce_multicast_one_shot<SumOfFloats>(team, work);
}

__global__ void __launch_bounds__(kMaxThreads, 1)
    weakened_multicast_two_shot(const __grid_constant__ Work work) {
  BasicMulticastTeam<Weakened> team(work);
  all_reduce_multicast_two_shot<SumOfFloats>(team, work);
}

__global__ void __launch_bounds__(kMaxThreads, 1)
    weakened_one_shot_push(const __grid_constant__ Work work) {
  PacketTeam<0, Weakened> team(work);
  all_reduce_one_shot_push<SumOfFloats>(team, work);
}

__global__ void __launch_bounds__(kMaxThreads, 1)
    weakened_two_shot_push(const __grid_constant__ Work work) {
  PacketTeam<0, Weakened> team(work);
  all_reduce_two_shot_push<SumOfFloats>(team, work);
}

__global__ void __launch_bounds__(kMaxThreads, 1)
    weakened_two_shot_staged(const __grid_constant__ Work work) {
  NvlinkTeam<Weakened> team(work);
  all_reduce_two_shot_staged<SumOfFloats>(team, work);
}

__global__ void __launch_bounds__(kMaxThreads, 1)
    weakened_two_shot_tma(const __grid_constant__ Work work) {
  __shared__ BulkMoves moves;
  BulkTeam<Weakened> team(work, moves);
  all_reduce_two_shot_tma<SumOfFloats>(team, work);
}

__global__ void __launch_bounds__(kMaxThreads, 1)
    weakened_between_copies(const __grid_constant__ Work work) {
  // It has one barrier at most: without that there is no epoch to keep.
  Work part = work;
  part.meets = work.meets && !Weakened::skip_barrier(0);
  NvlinkTeam<Weakened> team(part);
  run_between_copies<SumOfFloats>(team, part);
}

__global__ void __launch_bounds__(kMaxThreads, 1) weakened_ring(const __grid_constant__ Work work) {
  __shared__ RingTeam<Weakened>::Progress progress;
  RingTeam<Weakened> team(work, progress);
  all_reduce_ring<SumOfFloats>(team, work);
}

}  // namespace

CudaKernel weakened_kernel(std::string_view id) {
  if (id == "all_reduce/one_shot") return reinterpret_cast<CudaKernel>(&weakened_one_shot);
  if (id == "all_reduce/two_shot") return reinterpret_cast<CudaKernel>(&weakened_two_shot);
  if (id == "all_reduce/multicast_one_shot") {
    return reinterpret_cast<CudaKernel>(&weakened_multicast_one_shot);
  }
  if (id == "all_reduce/multicast_two_shot") {
    return reinterpret_cast<CudaKernel>(&weakened_multicast_two_shot);
  }
  if (id == "all_reduce/one_shot_push") {
    return reinterpret_cast<CudaKernel>(&weakened_one_shot_push);
  }
  if (id == "all_reduce/two_shot_push") {
    return reinterpret_cast<CudaKernel>(&weakened_two_shot_push);
  }
  if (id == "all_reduce/two_shot_staged") {
    return reinterpret_cast<CudaKernel>(&weakened_two_shot_staged);
  }
  if (id == "all_reduce/two_shot_tma") return reinterpret_cast<CudaKernel>(&weakened_two_shot_tma);
  if (id.ends_with("_copy_engine")) return reinterpret_cast<CudaKernel>(&weakened_between_copies);
  if (id.starts_with("all_reduce/ring")) return reinterpret_cast<CudaKernel>(&weakened_ring);
  return nullptr;
}

bool set_weakening(const CudaWeakening& weakening, Stream stream) {
  return cudaMemcpyToSymbolAsync(device_weakening, &weakening, sizeof weakening, 0,
                                 cudaMemcpyHostToDevice, stream) == cudaSuccess;
}

}  // namespace tutti::test
