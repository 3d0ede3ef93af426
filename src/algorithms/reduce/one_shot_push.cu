#include "algorithms/instantiate.hpp"
#include "algorithms/reduce/one_shot_push.hpp"
#include "algorithms/reduce/rows.hpp"
#include "device/nvlink_peer/packet_team.cuh"

namespace tutti {
namespace {

template <class Reduction>
__global__ void __launch_bounds__(kMaxThreads, 1)
    reduce_one_shot_push_kernel(const __grid_constant__ KernelArgs work) {
  PacketTeam<> team(work);
  reduce_one_shot_push<Reduction>(team, work);
}

}  // namespace

CudaKernel cuda_reduce_one_shot_push(DataType dtype, OpKind op, int) {
  return with_column_reduction(dtype, op, [](auto reduction) {
    return reinterpret_cast<CudaKernel>(
        &reduce_one_shot_push_kernel<typename decltype(reduction)::Type>);
  });
}

}  // namespace tutti
