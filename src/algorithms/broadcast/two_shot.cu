#include "algorithms/broadcast/rows.hpp"
#include "algorithms/broadcast/two_shot.hpp"
#include "device/nvlink_peer/nvlink_team.cuh"

namespace tutti {
namespace {

__global__ void __launch_bounds__(kMaxThreads, 1)
    broadcast_two_shot_kernel(const __grid_constant__ KernelArgs work) {
  NvlinkTeam<> team(work);
  broadcast_two_shot(team, work);
}

}  // namespace

CudaKernel cuda_broadcast_two_shot(DataType, OpKind, int) {
  return reinterpret_cast<CudaKernel>(&broadcast_two_shot_kernel);
}

}  // namespace tutti
