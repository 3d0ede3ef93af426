#include "algorithms/reduce/multicast.hpp"
#include "algorithms/reduce/rows.hpp"
#include "device/multicast/multicast_team.cuh"

namespace tutti {
namespace {

template <class Reduction>
__global__ void __launch_bounds__(kMaxThreads, 1)
    reduce_multicast_kernel(const __grid_constant__ KernelArgs work) {
  MulticastTeam team(work);
  reduce_multicast<Reduction>(team, work);
}

}  // namespace

CudaKernel cuda_reduce_multicast(DataType dtype, OpKind op, int) {
  return with_switch_reduction(dtype, op, [](auto reduction) -> CudaKernel {
    return reinterpret_cast<CudaKernel>(
        &reduce_multicast_kernel<typename decltype(reduction)::Type>);
  });
}

}  // namespace tutti
