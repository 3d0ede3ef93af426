#include "algorithms/all_gather/ring.hpp"
#include "algorithms/all_gather/rows.hpp"
#include "device/nvlink_peer/ring_team.cuh"

namespace tutti {
namespace {

__global__ void __launch_bounds__(kMaxThreads, 1)
    all_gather_ring_kernel(const __grid_constant__ KernelArgs work) {
  __shared__ RingTeam<>::Progress progress;
  RingTeam<> team(work, progress);
  all_gather_ring(team, work);
}

}  // namespace

CudaKernel cuda_all_gather_ring(DataType, OpKind, int) {
  return reinterpret_cast<CudaKernel>(&all_gather_ring_kernel);
}

}  // namespace tutti
