#include "algorithms/instantiate.hpp"
#include "algorithms/reduce_scatter/pull_tma.hpp"
#include "algorithms/reduce_scatter/rows.hpp"
#include "device/nvlink_peer/bulk_team.cuh"

namespace tutti {
namespace {

template <class Reduction>
__global__ void __launch_bounds__(kMaxThreads, 1)
    reduce_scatter_pull_tma_kernel(const __grid_constant__ KernelArgs work) {
  __shared__ BulkMoves moves;
  __shared__ BulkFetches fetches;
  BulkTeam<> team(work, moves, &fetches);
  reduce_scatter_pull_tma<Reduction>(team, work);
}

}  // namespace

CudaKernel cuda_reduce_scatter_pull_tma(DataType dtype, OpKind op, int) {
  return with_reduction(dtype, op, [](auto reduction) -> CudaKernel {
    return reinterpret_cast<CudaKernel>(
        &reduce_scatter_pull_tma_kernel<typename decltype(reduction)::Type>);
  });
}

}  // namespace tutti
