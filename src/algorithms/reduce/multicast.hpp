// reduce/multicast: the root has the switch reduce all of it.
//
//   phase 1  stage in (only for inputs that peers cannot address)
//   phase 2  barrier: every input is there
//   phase 3  the root loads each tile reduced by the switch, and stores it to its output
//   phase 4  barrier: nobody reads my input any more
//
// Cost: 4 hops. All of the input goes out over each rank's links, and comes in over the root's,
// once: shares that other ranks ask for and store to the root would take as much, and a hop more.
#pragma once

#include "algorithms/all_reduce/multicast_one_shot.hpp"
#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/multicast_buffers.hpp"

namespace tutti {

struct ReduceMulticast {
  using Kernel = MulticastKernel;
  using Types = SwitchReductions;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  // The root does it all.
  static Geometry geometry(const Extent& extent) {
    return two_shot_geometry({extent.bytes, 1, extent.token_bytes});
  }

  static constexpr Algorithm kAlgorithm{
      .id = "reduce/multicast",
      .collective = Collective::kReduce,
      .family = Family::kMulticast,
      .needs = kNeedsPeerAccess | kNeedsMulticast,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .order = Order::kNone,
      // Not measured by anybody here: as all_reduce/multicast_one_shot, of which the root does its
      // part.
      .cost = {.steps = 4, .wire = times<1>, .local = times<2>},
      .text = "the root reads the sum of all inputs from the switch",
      .only_where_measured = true,
      .takes = switch_reduces,
      .geometry = geometry,
      .host = host,
      .cuda = cuda};
  static constexpr KernelPromises kPromises{.loads = 1, .barriers = 2};
  static constexpr Traffic kTraffic{.hops = "4", .wire = "B"};

  template <class Reduction, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work);
};

template <class Reduction, class Team>
TUTTI_BODY Outcome ReduceMulticast::run(Team& team, const KernelArgs& work) {
  return reduce_all_by_switch<Reduction>(team, work, work.rank == work.root);
}

}  // namespace tutti
