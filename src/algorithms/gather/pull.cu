#include "algorithms/gather/pull.hpp"
#include "algorithms/gather/rows.hpp"
#include "device/nvlink_peer/nvlink_team.cuh"

namespace tutti {
namespace {

__global__ void __launch_bounds__(kMaxThreads, 1)
    gather_pull_kernel(const __grid_constant__ KernelArgs work) {
  NvlinkTeam<> team(work);
  gather_pull(team, work);
}

}  // namespace

CudaKernel cuda_gather_pull(DataType, OpKind, int) {
  return reinterpret_cast<CudaKernel>(&gather_pull_kernel);
}

}  // namespace tutti
