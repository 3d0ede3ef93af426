#include "algorithms/instantiate.hpp"
#include "algorithms/reduce_scatter/pull_rows.hpp"
#include "algorithms/reduce_scatter/rows.hpp"
#include "device/nvlink_peer/nvlink_team.cuh"

namespace tutti {
namespace {

template <class Reduction>
__global__ void __launch_bounds__(kMaxThreads, 1)
    reduce_scatter_pull_rows_kernel(const __grid_constant__ KernelArgs work) {
  NvlinkTeam<> team(work);
  reduce_scatter_pull_rows<Reduction>(team, work);
}

}  // namespace

CudaKernel cuda_reduce_scatter_pull_rows(DataType dtype, OpKind op, int) {
  return with_reduction(dtype, op, [](auto reduction) -> CudaKernel {
    return reinterpret_cast<CudaKernel>(
        &reduce_scatter_pull_rows_kernel<typename decltype(reduction)::Type>);
  });
}

}  // namespace tutti
