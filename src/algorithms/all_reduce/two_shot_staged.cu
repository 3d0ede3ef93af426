#include "algorithms/all_reduce/rows.hpp"
#include "algorithms/all_reduce/two_shot_staged.hpp"
#include "algorithms/instantiate.hpp"
#include "device/nvlink_peer/nvlink_team.cuh"

namespace tutti {
namespace {

template <class Reduction>
__global__ void __launch_bounds__(kMaxThreads, 1)
    two_shot_staged_kernel(const __grid_constant__ KernelArgs work) {
  NvlinkTeam<> team(work);
  all_reduce_two_shot_staged<Reduction>(team, work);
}

}  // namespace

CudaKernel cuda_all_reduce_two_shot_staged(DataType dtype, OpKind op, int) {
  return with_reduction(dtype, op, [](auto reduction) -> CudaKernel {
    return reinterpret_cast<CudaKernel>(
        &two_shot_staged_kernel<typename decltype(reduction)::Type>);
  });
}

}  // namespace tutti
