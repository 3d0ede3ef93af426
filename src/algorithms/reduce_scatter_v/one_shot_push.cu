#include "algorithms/instantiate.hpp"
#include "algorithms/reduce_scatter_v/one_shot_push.hpp"
#include "algorithms/reduce_scatter_v/rows.hpp"
#include "device/nvlink_peer/packet_team.cuh"

namespace tutti {
namespace {

template <class Reduction>
__global__ void __launch_bounds__(kMaxThreads, 1)
    reduce_scatter_v_one_shot_push_kernel(const __grid_constant__ KernelArgs work,
                                          const __grid_constant__ PieceCounts counts) {
  PacketTeam<> team(work);
  reduce_scatter_v_one_shot_push<Reduction>(team, work, counts);
}

}  // namespace

// One kernel for any number of ranks.
CudaKernel cuda_reduce_scatter_v_one_shot_push(DataType dtype, OpKind op, int) {
  return with_column_reduction(dtype, op, [](auto reduction) -> CudaKernel {
    return reinterpret_cast<CudaKernel>(
        &reduce_scatter_v_one_shot_push_kernel<typename decltype(reduction)::Type>);
  });
}

}  // namespace tutti
