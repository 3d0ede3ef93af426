#include "algorithms/scatter/push.hpp"
#include "algorithms/scatter/rows.hpp"
#include "device/nvlink_peer/nvlink_team.cuh"

namespace tutti {
namespace {

__global__ void __launch_bounds__(kMaxThreads, 1)
    scatter_push_kernel(const __grid_constant__ KernelArgs work) {
  NvlinkTeam<> team(work);
  scatter_push(team, work);
}

}  // namespace

CudaKernel cuda_scatter_push(DataType, OpKind, int) {
  return reinterpret_cast<CudaKernel>(&scatter_push_kernel);
}

}  // namespace tutti
