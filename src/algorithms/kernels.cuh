// The kernels of bodies, and what finds them: for generated sources.
#pragma once

#include "algorithms/descriptor.hpp"
#include "device/nvlink_peer/bulk_team.cuh"
#include "device/nvlink_peer/local_team.cuh"
#include "device/nvlink_peer/message_team.cuh"
#include "device/nvlink_peer/nvlink_team.cuh"
#include "device/nvlink_peer/ring_team.cuh"
#include "device/nvlink_peer/token_team.cuh"

namespace tutti {

// The team of a block, for exactly kRanks ranks or for any number of them (0).
template <class Body, int kRanks>
using TeamOf = typename Body::Kernel::template Team<kRanks>;

template <class Body, class Reduction, int kRanks>
__global__ void __launch_bounds__(kMaxThreads, 1)
    team_kernel(const __grid_constant__ KernelArgs work) {
  TeamOf<Body, kRanks> team(work);
  Body::template run<Reduction>(team, work);
}

template <class Body, class Reduction, int kRanks>
__global__ void __launch_bounds__(kMaxThreads, 1)
    team_beside_kernel(const __grid_constant__ KernelArgs work,
                       const __grid_constant__ typename Body::Beside beside) {
  TeamOf<Body, kRanks> team(work);
  Body::template run<Reduction>(team, work, beside);
}

template <class Body, class Reduction, int kRanks>
__global__ void __launch_bounds__(kMaxThreads, 1)
    ring_kernel(const __grid_constant__ KernelArgs work) {
  __shared__ typename TeamOf<Body, kRanks>::Progress progress;
  TeamOf<Body, kRanks> team(work, progress);
  Body::template run<Reduction>(team, work);
}

template <class Body, class Reduction, int kRanks>
__global__ void __launch_bounds__(kMaxThreads, 1)
    bulk_kernel(const __grid_constant__ KernelArgs work) {
  __shared__ BulkMoves moves;
  TeamOf<Body, kRanks> team(work, moves);
  Body::template run<Reduction>(team, work);
}

template <class Body, class Reduction, int kRanks>
__global__ void __launch_bounds__(kMaxThreads, 1)
    bulk_fetch_kernel(const __grid_constant__ KernelArgs work) {
  __shared__ BulkMoves moves;
  __shared__ BulkFetches fetches;
  TeamOf<Body, kRanks> team(work, moves, &fetches);
  Body::template run<Reduction>(team, work);
}

template <class Body, class Reduction, int kRanks>
__global__ void __launch_bounds__(kMaxThreads, 1)
    message_kernel(const __grid_constant__ KernelArgs work,
                   const __grid_constant__ typename Body::Beside messages) {
  __shared__ typename TeamOf<Body, kRanks>::Shared shared;
  TeamOf<Body, kRanks> team(work, shared);
  Body::template run<Reduction>(team, work, messages);
}

// Of a Follower: what comes behind an algorithm's own kernel.
template <class Body, class Reduction, int kWhich>
__global__ void __launch_bounds__(kMaxThreads, Body::blocks_per_sm(kWhich))
    local_kernel(const __grid_constant__ KernelArgs work) {
  LocalTeam team(work);
  Body::template run_as<Reduction, kWhich>(team, work, WideAccess{});
}

// The kinds of kernels: kExact where there is one for each number of ranks that is worth it.
struct TeamKernel {
  static constexpr bool kExact = false;
  template <class Body, class Reduction, int kRanks>
  static CudaKernel of() {
    if constexpr (requires { typename Body::Beside; }) {
      return reinterpret_cast<CudaKernel>(&team_beside_kernel<Body, Reduction, kRanks>);
    } else {
      return reinterpret_cast<CudaKernel>(&team_kernel<Body, Reduction, kRanks>);
    }
  }
};
struct PeerKernel : TeamKernel {
  template <int>
  using Team = NvlinkTeam<>;
};
struct PacketKernel : TeamKernel {
  template <int kRanks>
  using Team = PacketTeam<kRanks>;
};
struct ExactPacketKernel : PacketKernel {
  static constexpr bool kExact = true;
};
struct TokenKernel : TeamKernel {
  static constexpr bool kExact = true;
  template <int kRanks>
  using Team = TokenTeam<kRanks>;
};

struct RingKernel {
  static constexpr bool kExact = false;
  template <int>
  using Team = RingTeam<>;
  template <class Body, class Reduction, int kRanks>
  static CudaKernel of() {
    return reinterpret_cast<CudaKernel>(&ring_kernel<Body, Reduction, kRanks>);
  }
};
struct BulkKernel {
  static constexpr bool kExact = false;
  template <int>
  using Team = BulkTeam<>;
  template <class Body, class Reduction, int kRanks>
  static CudaKernel of() {
    return reinterpret_cast<CudaKernel>(&bulk_kernel<Body, Reduction, kRanks>);
  }
};
struct BulkFetchKernel : BulkKernel {
  template <class Body, class Reduction, int kRanks>
  static CudaKernel of() {
    return reinterpret_cast<CudaKernel>(&bulk_fetch_kernel<Body, Reduction, kRanks>);
  }
};
struct MessageKernel {
  static constexpr bool kExact = false;
  template <int>
  using Team = MessageTeam<>;
  template <class Body, class Reduction, int kRanks>
  static CudaKernel of() {
    return reinterpret_cast<CudaKernel>(&message_kernel<Body, Reduction, kRanks>);
  }
};

// Checks of machine code need a sample (TUTTI_SAMPLE_KERNELS): each element type and each operation
// once, but not all of their pairs.
#ifdef TUTTI_SAMPLE_KERNELS
template <class Reduction>
inline constexpr bool kIsCompiled = std::is_same_v<typename Reduction::Op, Sum> ||
                                    std::is_same_v<typename Reduction::Element, Bfloat16> ||
                                    (std::is_same_v<typename Reduction::Op, Max> &&
                                     std::is_same_v<typename Reduction::Element, std::int32_t>);
#else
template <class>
inline constexpr bool kIsCompiled = true;
#endif

template <class Body>
CudaKernel cuda_kernel(DataType dtype, OpKind op, int ranks) {
  using Kernel = typename Body::Kernel;
  return Body::Types::select(dtype, op, [&](auto reduction) -> CudaKernel {
    using Reduced = typename decltype(reduction)::Type;
    if constexpr (!kIsCompiled<Reduced>) {
      return nullptr;
    } else if constexpr (Kernel::kExact) {
      return with_exact_ranks<Reduced>(ranks, [](auto exact) -> CudaKernel {
        return Kernel::template of<Body, Reduced, exact()>();
      });
    } else {
      return Kernel::template of<Body, Reduced, 0>();
    }
  });
}

template <class Body, int kWhich = 0>
CudaKernel follower_kernel(DataType dtype, int kernel) {
  if constexpr (kWhich < Body::kKernels) {
    if (kernel > kWhich) return follower_kernel<Body, kWhich + 1>(dtype, kernel);
    return Body::Types::select(dtype, OpKind::kSum, [](auto reduction) {
      using Reduced = typename decltype(reduction)::Type;
      return reinterpret_cast<CudaKernel>(&local_kernel<Body, Reduced, kWhich>);
    });
  }
  return nullptr;
}

}  // namespace tutti
