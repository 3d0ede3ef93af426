#include "algorithms/all_gather/multicast.hpp"
#include "algorithms/all_gather/rows.hpp"
#include "device/multicast/multicast_team.cuh"

namespace tutti {
namespace {

__global__ void __launch_bounds__(kMaxThreads, 1)
    all_gather_multicast_kernel(const __grid_constant__ KernelArgs work) {
  MulticastTeam team(work);
  all_gather_multicast(team, work);
}

}  // namespace

CudaKernel cuda_all_gather_multicast(DataType, OpKind, int) {
  return reinterpret_cast<CudaKernel>(&all_gather_multicast_kernel);
}

}  // namespace tutti
