#include "algorithms/all_gather/push.hpp"
#include "algorithms/all_gather/rows.hpp"
#include "device/nvlink_peer/nvlink_team.cuh"

namespace tutti {
namespace {

__global__ void __launch_bounds__(kMaxThreads, 1)
    all_gather_push_kernel(const __grid_constant__ KernelArgs work) {
  NvlinkTeam<> team(work);
  all_gather_push(team, work);
}

}  // namespace

CudaKernel cuda_all_gather_push(DataType, OpKind, int) {
  return reinterpret_cast<CudaKernel>(&all_gather_push_kernel);
}

}  // namespace tutti
