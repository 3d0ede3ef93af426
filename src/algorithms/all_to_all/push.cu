#include "algorithms/all_to_all/push.hpp"
#include "algorithms/all_to_all/rows.hpp"
#include "device/nvlink_peer/nvlink_team.cuh"

namespace tutti {
namespace {

__global__ void __launch_bounds__(kMaxThreads, 1)
    all_to_all_push_kernel(const __grid_constant__ KernelArgs work) {
  NvlinkTeam<> team(work);
  all_to_all_push(team, work);
}

}  // namespace

CudaKernel cuda_all_to_all_push(DataType, OpKind, int) {
  return reinterpret_cast<CudaKernel>(&all_to_all_push_kernel);
}

}  // namespace tutti
