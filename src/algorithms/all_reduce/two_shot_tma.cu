#include "algorithms/all_reduce/rows.hpp"
#include "algorithms/all_reduce/two_shot_tma.hpp"
#include "algorithms/instantiate.hpp"
#include "device/nvlink_peer/bulk_team.cuh"

namespace tutti {
namespace {

template <class Reduction>
__global__ void __launch_bounds__(kMaxThreads, 1)
    two_shot_tma_kernel(const __grid_constant__ KernelArgs work) {
  __shared__ BulkMoves moves;
  BulkTeam<> team(work, moves);
  all_reduce_two_shot_tma<Reduction>(team, work);
}

}  // namespace

CudaKernel cuda_all_reduce_two_shot_tma(DataType dtype, OpKind op, int) {
  return with_reduction(dtype, op, [](auto reduction) -> CudaKernel {
    return reinterpret_cast<CudaKernel>(&two_shot_tma_kernel<typename decltype(reduction)::Type>);
  });
}

}  // namespace tutti
