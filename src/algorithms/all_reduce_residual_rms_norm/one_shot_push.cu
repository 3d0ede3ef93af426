#include "algorithms/all_reduce_residual_rms_norm/one_shot_push.hpp"
#include "algorithms/all_reduce_residual_rms_norm/rows.hpp"
#include "device/nvlink_peer/token_team.cuh"

namespace tutti {
namespace {

template <class Reduction, int kRanks>
__global__ void __launch_bounds__(kMaxThreads, 1)
    rms_norm_one_shot_push_kernel(const __grid_constant__ KernelArgs work) {
  TokenTeam<kRanks> team(work);
  all_reduce_residual_rms_norm_one_shot_push<Reduction>(team, work);
}

}  // namespace

CudaKernel cuda_all_reduce_residual_rms_norm_one_shot_push(DataType dtype, OpKind, int ranks) {
  return with_normalised(dtype, [&](auto reduction) {
    using Reduced = typename decltype(reduction)::Type;
    return with_exact_ranks<Reduced>(ranks, [](auto exact) {
      return reinterpret_cast<CudaKernel>(&rms_norm_one_shot_push_kernel<Reduced, exact()>);
    });
  });
}

}  // namespace tutti
