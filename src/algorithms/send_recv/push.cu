#include "algorithms/send_recv/push.hpp"
#include "algorithms/send_recv/rows.hpp"
#include "device/nvlink_peer/message_team.cuh"

namespace tutti {
namespace {

__global__ void __launch_bounds__(kMaxThreads, 1)
    send_recv_push_kernel(const __grid_constant__ KernelArgs work,
                          const __grid_constant__ Messages messages) {
  __shared__ MessageTeam<>::Shared shared;
  MessageTeam<> team(work, shared);
  send_recv_push(team, messages);
}

}  // namespace

CudaKernel cuda_send_recv_push(DataType, OpKind, int) {
  return reinterpret_cast<CudaKernel>(&send_recv_push_kernel);
}

}  // namespace tutti
