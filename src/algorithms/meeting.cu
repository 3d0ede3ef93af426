#include "algorithms/meeting.hpp"
#include "device/nvlink_peer/nvlink_team.cuh"

namespace tutti {
namespace {

// What copies have brought, and what they have taken away, the stream has seen to: nothing of the
// kernel's own is to be released.
__global__ void __launch_bounds__(kMaxThreads, 1)
    meeting_kernel(const __grid_constant__ KernelArgs work) {
  NvlinkTeam<> team(work);
  if (team.barrier(Publish::kEarlierKernels) == Outcome::kDone) team.finish();
}

}  // namespace

CudaKernel cuda_meeting(DataType, OpKind, int) {
  return reinterpret_cast<CudaKernel>(&meeting_kernel);
}

}  // namespace tutti
