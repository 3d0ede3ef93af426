#include "algorithms/instantiate.hpp"
#include "algorithms/reduce_scatter/push_per_peer.hpp"
#include "algorithms/reduce_scatter/rows.hpp"
#include "device/nvlink_peer/bulk_team.cuh"

namespace tutti {
namespace {

template <class Reduction>
__global__ void __launch_bounds__(kMaxThreads, 1)
    reduce_scatter_push_per_peer_kernel(const __grid_constant__ KernelArgs work) {
  __shared__ BulkMoves moves;
  __shared__ BulkFetches fetches;
  BulkTeam<> team(work, moves, &fetches);
  reduce_scatter_push_per_peer<Reduction>(team, work);
}

}  // namespace

CudaKernel cuda_reduce_scatter_push_per_peer(DataType dtype, OpKind op, int) {
  return with_reduction(dtype, op, [](auto reduction) -> CudaKernel {
    using Reduction = typename decltype(reduction)::Type;
    if constexpr (sizeof(typename Reduction::Element) == 1) {
      return nullptr;  // not taken
    } else {
      return reinterpret_cast<CudaKernel>(&reduce_scatter_push_per_peer_kernel<Reduction>);
    }
  });
}

}  // namespace tutti
