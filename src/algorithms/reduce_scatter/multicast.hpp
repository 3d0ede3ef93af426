// reduce_scatter/multicast: each rank has the switch reduce its piece.
//
//   phase 1  stage in: a slot of every rank's piece (only for inputs that peers cannot address)
//   phase 2  barrier: every input is there
//   phase 3  load each tile of my piece reduced by the switch, store to own output
//   phase 4  barrier: nobody reads my input any more
//
// Cost: 4 hops, as pull. All of the input goes out over each rank's links, 1/n of it comes in. In
// place is safe as there: the switch gives a tile before the thread that asked for it overwrites
// it.
#pragma once

#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/moving.hpp"
#include "algorithms/multicast_buffers.hpp"
#include "algorithms/reduce_scatter/pull.hpp"

namespace tutti {

struct ReduceScatterMulticast {
  using Kernel = MulticastKernel;
  using Types = SwitchReductions;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  static constexpr Algorithm kAlgorithm{
      .id = "reduce_scatter/multicast",
      .collective = Collective::kReduceScatter,
      .family = Family::kMulticast,
      .needs = kNeedsPeerAccess | kNeedsMulticast,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .order = Order::kNone,
      // Not measured by anybody here: as pull.
      .cost = {.steps = 4, .wire = times<1>, .local = own_piece_local},
      .text = "each rank reads the sum of its block from the switch",
      .only_where_measured = true,
      .takes = switch_reduces,
      .geometry = two_shot_geometry,
      .host = host,
      .cuda = cuda};
  static constexpr KernelPromises kPromises{.loads = 1, .barriers = 2};
  static constexpr Traffic kTraffic{.hops = "4", .wire = "B out, B/n in"};

  template <class Reduction, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work);
};

template <class Reduction, class Team>
TUTTI_BODY Outcome ReduceScatterMulticast::run(Team& team, const KernelArgs& work) {
  return reduce_my_piece<Reduction>(team, work, [&](const auto& buffers) {
    const Fabric<Reduction, Team> fabric(team, work, buffers);
    return [fabric](auto access, TileAt tile) { return fabric.reduce(access, tile); };
  });
}

}  // namespace tutti
