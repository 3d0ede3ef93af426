#include "algorithms/all_reduce/one_shot_push.hpp"
#include "algorithms/all_reduce/two_shot.hpp"
#include "algorithms/all_reduce/two_shot_push.hpp"
#include "algorithms/all_reduce_residual_rms_norm/rows.hpp"
#include "algorithms/all_reduce_residual_rms_norm/split.hpp"
#include "device/nvlink_peer/local_team.cuh"
#include "device/nvlink_peer/nvlink_team.cuh"
#include "device/nvlink_peer/packet_team.cuh"

namespace tutti {
namespace {

template <class Reduction, int kRanks>
__global__ void __launch_bounds__(kMaxThreads, 1)
    rms_norm_one_shot_push_split_kernel(const __grid_constant__ KernelArgs work) {
  PacketTeam<kRanks> team(work);
  all_reduce_one_shot_push<Reduction, PacketTeam<kRanks>, PlusResidual>(team, work);
}

template <class Reduction, int kRanks>
__global__ void __launch_bounds__(kMaxThreads, 1)
    rms_norm_two_shot_push_kernel(const __grid_constant__ KernelArgs work) {
  PacketTeam<kRanks> team(work);
  all_reduce_two_shot_push<Reduction, PacketTeam<kRanks>, PlusResidual>(team, work);
}

template <class Reduction>
__global__ void __launch_bounds__(kMaxThreads, 1)
    rms_norm_two_shot_kernel(const __grid_constant__ KernelArgs work) {
  NvlinkTeam<> team(work);
  all_reduce_two_shot<Reduction, NvlinkTeam<>, PlusResidual>(team, work);
}

// Three blocks on a multiprocessor: its memory keeps busy while one of them sums up.
template <class T, class Output>
__global__ void __launch_bounds__(kMaxThreads, 3)
    normalise_whole_tiles_kernel(const __grid_constant__ KernelArgs work) {
  LocalTeam team(work);
  normalise_tokens<T, Output>(team, work, WideAccess{});
}

template <class T>
__global__ void __launch_bounds__(kMaxThreads, 2)
    normalise_any_tiles_kernel(const __grid_constant__ KernelArgs work) {
  LocalTeam team(work);
  team.with_token_access<T>(
      work, [&](auto access) { return normalise_tokens<T, AnyOutput>(team, work, access); });
}

template <class T>
CudaKernel normaliser_of(int normaliser) {
  switch (normaliser) {
    case kWholeTiles:
      return reinterpret_cast<CudaKernel>(&normalise_whole_tiles_kernel<T, T>);
    case kWholeTilesToE4M3:
      return reinterpret_cast<CudaKernel>(&normalise_whole_tiles_kernel<T, Float8E4M3>);
    case kWholeTilesToE5M2:
      return reinterpret_cast<CudaKernel>(&normalise_whole_tiles_kernel<T, Float8E5M2>);
    default:
      return reinterpret_cast<CudaKernel>(&normalise_any_tiles_kernel<T>);
  }
}

}  // namespace

CudaKernel cuda_all_reduce_residual_rms_norm_one_shot_push_split(DataType dtype, OpKind,
                                                                 int ranks) {
  return with_normalised(dtype, [&](auto reduction) {
    using Reduced = typename decltype(reduction)::Type;
    return with_exact_ranks<Reduced>(ranks, [](auto exact) {
      return reinterpret_cast<CudaKernel>(&rms_norm_one_shot_push_split_kernel<Reduced, exact()>);
    });
  });
}

CudaKernel cuda_all_reduce_residual_rms_norm_two_shot_push(DataType dtype, OpKind, int ranks) {
  return with_normalised(dtype, [&](auto reduction) {
    using Reduced = typename decltype(reduction)::Type;
    return with_exact_ranks<Reduced>(ranks, [](auto exact) {
      return reinterpret_cast<CudaKernel>(&rms_norm_two_shot_push_kernel<Reduced, exact()>);
    });
  });
}

CudaKernel cuda_all_reduce_residual_rms_norm_two_shot(DataType dtype, OpKind, int) {
  return with_normalised(dtype, [](auto reduction) -> CudaKernel {
    using Reduced = typename decltype(reduction)::Type;
    return reinterpret_cast<CudaKernel>(&rms_norm_two_shot_kernel<Reduced>);
  });
}

CudaKernel cuda_normalise_tokens(DataType dtype, int normaliser) {
  return with_normalised(dtype, [&](auto reduction) {
    return normaliser_of<typename decltype(reduction)::Type::Element>(normaliser);
  });
}

}  // namespace tutti
