#include "algorithms/instantiate.hpp"
#include "algorithms/reduce_scatter/ring.hpp"
#include "algorithms/reduce_scatter/rows.hpp"
#include "device/nvlink_peer/ring_team.cuh"

namespace tutti {
namespace {

template <class Reduction>
__global__ void __launch_bounds__(kMaxThreads, 1)
    reduce_scatter_ring_kernel(const __grid_constant__ KernelArgs work) {
  __shared__ RingTeam<>::Progress progress;
  RingTeam<> team(work, progress);
  reduce_scatter_ring<Reduction>(team, work);
}

}  // namespace

CudaKernel cuda_reduce_scatter_ring(DataType dtype, OpKind op, int) {
  return with_column_reduction(dtype, op, [](auto reduction) -> CudaKernel {
    return reinterpret_cast<CudaKernel>(
        &reduce_scatter_ring_kernel<typename decltype(reduction)::Type>);
  });
}

}  // namespace tutti
