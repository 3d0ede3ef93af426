#include "algorithms/all_reduce/rows.hpp"
#include "algorithms/instantiate.hpp"
#include "algorithms/team_stages.hpp"
#include "device/nvlink_peer/nvlink_team.cuh"

namespace tutti {
namespace {

template <class Reduction>
__global__ void __launch_bounds__(kMaxThreads, 1)
    between_copies_kernel(const __grid_constant__ KernelArgs work) {
  NvlinkTeam<> team(work);
  run_between_copies<Reduction>(team, work);
}

}  // namespace

CudaKernel cuda_all_reduce_copy_engine(DataType dtype, OpKind op, int) {
  return with_reduction(dtype, op, [](auto reduction) -> CudaKernel {
    return reinterpret_cast<CudaKernel>(&between_copies_kernel<typename decltype(reduction)::Type>);
  });
}

}  // namespace tutti
