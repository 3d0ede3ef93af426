#include "algorithms/all_gather/pull_tma.hpp"
#include "algorithms/all_gather/rows.hpp"
#include "device/nvlink_peer/bulk_team.cuh"

namespace tutti {
namespace {

__global__ void __launch_bounds__(kMaxThreads, 1)
    all_gather_pull_tma_kernel(const __grid_constant__ KernelArgs work) {
  __shared__ BulkMoves moves;
  __shared__ BulkFetches fetches;
  BulkTeam<> team(work, moves, &fetches);
  all_gather_pull_tma(team, work);
}

}  // namespace

CudaKernel cuda_all_gather_pull_tma(DataType, OpKind, int) {
  return reinterpret_cast<CudaKernel>(&all_gather_pull_tma_kernel);
}

}  // namespace tutti
