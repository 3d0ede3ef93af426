#include "algorithms/all_reduce/one_shot.hpp"
#include "algorithms/all_reduce/rows.hpp"
#include "algorithms/instantiate.hpp"
#include "device/nvlink_peer/nvlink_team.cuh"

namespace tutti {
namespace {

template <class Reduction>
__global__ void __launch_bounds__(kMaxThreads, 1)
    one_shot_kernel(const __grid_constant__ KernelArgs work) {
  NvlinkTeam<> team(work);
  all_reduce_one_shot<Reduction>(team, work);
}

}  // namespace

CudaKernel cuda_all_reduce_one_shot(DataType dtype, OpKind op, int) {
  return with_reduction(dtype, op, [](auto reduction) -> CudaKernel {
    return reinterpret_cast<CudaKernel>(&one_shot_kernel<typename decltype(reduction)::Type>);
  });
}

}  // namespace tutti
