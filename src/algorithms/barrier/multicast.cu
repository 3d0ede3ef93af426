#include "algorithms/barrier/flags.hpp"
#include "algorithms/barrier/rows.hpp"
#include "device/multicast/multicast_team.cuh"

namespace tutti {
namespace {

// The team tells all ranks by one store.
__global__ void __launch_bounds__(kMaxThreads, 1)
    barrier_multicast_kernel(const __grid_constant__ KernelArgs work) {
  MulticastTeam team(work);
  barrier_flags(team, work);
}

}  // namespace

CudaKernel cuda_barrier_multicast(DataType, OpKind, int) {
  return reinterpret_cast<CudaKernel>(&barrier_multicast_kernel);
}

}  // namespace tutti
