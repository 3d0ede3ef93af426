#include "algorithms/all_reduce_residual_rms_norm/rows.hpp"
#include "algorithms/all_reduce_residual_rms_norm/two_shot.hpp"
#include "transport/nvlink_peer/nvlink_team.cuh"

namespace tutti {
namespace {

template <class Reduction>
__global__ void __launch_bounds__(kMaxThreads, 1)
    rms_norm_two_shot_kernel(const __grid_constant__ Work work) {
  NvlinkTeam<> team(work);
  all_reduce_residual_rms_norm_two_shot<Reduction>(team, work);
}

}  // namespace

CudaKernel cuda_all_reduce_residual_rms_norm_two_shot(DataType dtype, OpKind, int) {
  return with_normalised(dtype, [](auto reduction) -> CudaKernel {
    using Reduced = typename decltype(reduction)::Type;
    return reinterpret_cast<CudaKernel>(&rms_norm_two_shot_kernel<Reduced>);
  });
}

}  // namespace tutti
