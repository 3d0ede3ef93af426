#include "algorithms/instantiate.hpp"
#include "algorithms/reduce_scatter_v/pull.hpp"
#include "algorithms/reduce_scatter_v/rows.hpp"
#include "device/nvlink_peer/nvlink_team.cuh"

namespace tutti {
namespace {

template <class Reduction>
__global__ void __launch_bounds__(kMaxThreads, 1)
    reduce_scatter_v_pull_kernel(const __grid_constant__ KernelArgs work,
                                 const __grid_constant__ PieceCounts counts) {
  NvlinkTeam<> team(work);
  reduce_scatter_v_pull<Reduction>(team, work, counts);
}

}  // namespace

CudaKernel cuda_reduce_scatter_v_pull(DataType dtype, OpKind op, int) {
  return with_reduction(dtype, op, [](auto reduction) -> CudaKernel {
    return reinterpret_cast<CudaKernel>(
        &reduce_scatter_v_pull_kernel<typename decltype(reduction)::Type>);
  });
}

}  // namespace tutti
