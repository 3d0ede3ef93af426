#include "algorithms/broadcast/one_shot_push.hpp"
#include "algorithms/broadcast/rows.hpp"
#include "device/nvlink_peer/packet_team.cuh"

namespace tutti {
namespace {

__global__ void __launch_bounds__(kMaxThreads, 1)
    broadcast_one_shot_push_kernel(const __grid_constant__ KernelArgs work) {
  PacketTeam<> team(work);
  broadcast_one_shot_push(team, work);
}

}  // namespace

CudaKernel cuda_broadcast_one_shot_push(DataType, OpKind, int) {
  return reinterpret_cast<CudaKernel>(&broadcast_one_shot_push_kernel);
}

}  // namespace tutti
