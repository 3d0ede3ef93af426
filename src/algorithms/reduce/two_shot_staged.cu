#include "algorithms/instantiate.hpp"
#include "algorithms/reduce/rows.hpp"
#include "algorithms/reduce/two_shot_staged.hpp"
#include "device/nvlink_peer/nvlink_team.cuh"

namespace tutti {
namespace {

template <class Reduction>
__global__ void __launch_bounds__(kMaxThreads, 1)
    reduce_two_shot_staged_kernel(const __grid_constant__ KernelArgs work) {
  NvlinkTeam<> team(work);
  reduce_two_shot_staged<Reduction>(team, work);
}

}  // namespace

CudaKernel cuda_reduce_two_shot_staged(DataType dtype, OpKind op, int) {
  return with_reduction(dtype, op, [](auto reduction) -> CudaKernel {
    return reinterpret_cast<CudaKernel>(
        &reduce_two_shot_staged_kernel<typename decltype(reduction)::Type>);
  });
}

}  // namespace tutti
