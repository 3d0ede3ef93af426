#include "algorithms/all_reduce/multicast_two_shot.hpp"
#include "algorithms/all_reduce/rows.hpp"
#include "device/multicast/multicast_team.cuh"

namespace tutti {
namespace {

template <class Reduction>
__global__ void __launch_bounds__(kMaxThreads, 1)
    multicast_two_shot_kernel(const __grid_constant__ KernelArgs work) {
  MulticastTeam team(work);
  all_reduce_multicast_two_shot<Reduction>(team, work);
}

}  // namespace

CudaKernel cuda_all_reduce_multicast_two_shot(DataType dtype, OpKind op, int) {
  return with_switch_reduction(dtype, op, [](auto reduction) -> CudaKernel {
    return reinterpret_cast<CudaKernel>(
        &multicast_two_shot_kernel<typename decltype(reduction)::Type>);
  });
}

}  // namespace tutti
