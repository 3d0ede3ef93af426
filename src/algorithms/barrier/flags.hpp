// barrier/flags: the ranks meet.
//
//   barrier  what came before on any rank is before what follows on all
//
// Cost: 1 hop (a flag).
#pragma once

#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/moving.hpp"
#include "device/team.hpp"

namespace tutti {

struct BarrierFlags {
  using Kernel = PeerKernel;
  using Types = MovedBytes;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  static constexpr Algorithm kAlgorithm{
      .id = "barrier/flags",
      .collective = Collective::kBarrier,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .cost = {.steps = 1.5, .wire = times<0>},
      .text = "every rank sets a flag at every other rank and waits for theirs",
      .peers_read_input = false,
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
TUTTI_BODY Outcome BarrierFlags::run(Team& team, const KernelArgs&) {
  if (team.barrier(Publish::kEarlierKernels) != Outcome::kDone) return Outcome::kFailed;
  return team.finish();
}

}  // namespace tutti
