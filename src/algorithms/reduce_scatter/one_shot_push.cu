#include "algorithms/instantiate.hpp"
#include "algorithms/reduce_scatter/one_shot_push.hpp"
#include "algorithms/reduce_scatter/rows.hpp"
#include "device/nvlink_peer/packet_team.cuh"

namespace tutti {
namespace {

template <class Reduction, int kRanks>
__global__ void __launch_bounds__(kMaxThreads, 1)
    reduce_scatter_one_shot_push_kernel(const __grid_constant__ KernelArgs work) {
  PacketTeam<kRanks> team(work);
  reduce_scatter_one_shot_push<Reduction>(team, work);
}

}  // namespace

CudaKernel cuda_reduce_scatter_one_shot_push(DataType dtype, OpKind op, int ranks) {
  return with_column_reduction(dtype, op, [&](auto reduction) {
    using Reduced = typename decltype(reduction)::Type;
    return with_exact_ranks<Reduced>(ranks, [](auto exact) {
      return reinterpret_cast<CudaKernel>(&reduce_scatter_one_shot_push_kernel<Reduced, exact()>);
    });
  });
}

}  // namespace tutti
