// barrier/multicast: as flags, but the switch tells every other rank.
#pragma once

#include "algorithms/barrier/flags.hpp"
#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/moving.hpp"

namespace tutti {

struct BarrierMulticast {
  using Kernel = MulticastKernel;
  using Types = MovedBytes;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  static constexpr Algorithm kAlgorithm{
      .id = "barrier/multicast",
      .collective = Collective::kBarrier,
      .family = Family::kMulticast,
      .needs = kNeedsPeerAccess | kNeedsMulticast,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .cost = {.steps = 1.5, .wire = times<0>},
      .text = "as flags, but the switch writes the flag to all ranks",
      .peers_read_input = false,
      .only_where_measured = true,
      .takes = moves,
      .geometry = meeting_geometry,
      .host = host,
      .cuda = cuda};
  static constexpr KernelPromises kPromises{.barriers = 1, .loops = 0};
  static constexpr Traffic kTraffic{.hops = "1", .wire = "nothing"};

  template <class, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work);
};

template <class, class Team>
TUTTI_BODY Outcome BarrierMulticast::run(Team& team, const KernelArgs& work) {
  return BarrierFlags::run<void>(team, work);
}

}  // namespace tutti
