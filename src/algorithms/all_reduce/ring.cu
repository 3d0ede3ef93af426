#include "algorithms/all_reduce/ring.hpp"
#include "algorithms/all_reduce/rows.hpp"
#include "algorithms/instantiate.hpp"
#include "device/nvlink_peer/ring_team.cuh"

namespace tutti {
namespace {

template <class Reduction>
__global__ void __launch_bounds__(kMaxThreads, 1)
    ring_kernel(const __grid_constant__ KernelArgs work) {
  __shared__ RingTeam<>::Progress progress;
  RingTeam<> team(work, progress);
  all_reduce_ring<Reduction>(team, work);
}

}  // namespace

CudaKernel cuda_all_reduce_ring(DataType dtype, OpKind op, int) {
  return with_column_reduction(dtype, op, [](auto reduction) -> CudaKernel {
    return reinterpret_cast<CudaKernel>(&ring_kernel<typename decltype(reduction)::Type>);
  });
}

}  // namespace tutti
