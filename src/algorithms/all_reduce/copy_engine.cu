#include "algorithms/all_reduce/rows.hpp"
#include "algorithms/instantiate.hpp"
#include "algorithms/team_stages.hpp"
#include "transport/nvlink_peer/nvlink_team.cuh"

namespace tutti {
namespace {

// What copies have brought, and what they have taken away, the stream has seen to: a kernel that
// only meets has nothing of its own to release.
template <class Reduction>
__global__ void __launch_bounds__(kMaxThreads, 1)
    between_copies_kernel(const __grid_constant__ Work work) {
  NvlinkTeam<> team(work);
  (void)team.buffers();
  const Publish publish = work.count == 0 ? Publish::kEarlierKernels : Publish::kStores;
  const Outcome outcome = reduce_between_copies<Reduction>(team, work, publish);
  if (work.meets && outcome == Outcome::kDone) team.finish();
}

}  // namespace

CudaKernel cuda_all_reduce_copy_engine(DataType dtype, OpKind op, int) {
  return with_reduction(dtype, op, [](auto reduction) -> CudaKernel {
    return reinterpret_cast<CudaKernel>(&between_copies_kernel<typename decltype(reduction)::Type>);
  });
}

}  // namespace tutti
