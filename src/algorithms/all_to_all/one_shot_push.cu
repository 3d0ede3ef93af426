#include "algorithms/all_to_all/one_shot_push.hpp"
#include "algorithms/all_to_all/rows.hpp"
#include "device/nvlink_peer/packet_team.cuh"

namespace tutti {
namespace {

__global__ void __launch_bounds__(kMaxThreads, 1)
    all_to_all_one_shot_push_kernel(const __grid_constant__ KernelArgs work) {
  PacketTeam<> team(work);
  all_to_all_one_shot_push(team, work);
}

}  // namespace

CudaKernel cuda_all_to_all_one_shot_push(DataType, OpKind, int) {
  return reinterpret_cast<CudaKernel>(&all_to_all_one_shot_push_kernel);
}

}  // namespace tutti
