#include "algorithms/all_gather/one_shot_push.hpp"
#include "algorithms/all_gather/rows.hpp"
#include "device/nvlink_peer/packet_team.cuh"

namespace tutti {
namespace {

__global__ void __launch_bounds__(kMaxThreads, 1)
    all_gather_one_shot_push_kernel(const __grid_constant__ KernelArgs work) {
  PacketTeam<> team(work);
  all_gather_one_shot_push(team, work);
}

}  // namespace

CudaKernel cuda_all_gather_one_shot_push(DataType, OpKind, int) {
  return reinterpret_cast<CudaKernel>(&all_gather_one_shot_push_kernel);
}

}  // namespace tutti
