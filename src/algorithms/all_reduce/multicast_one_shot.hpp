// all_reduce/multicast_one_shot: every rank has the switch reduce all of it.
//
//   phase 1  stage in (only for inputs that peers cannot address)
//   phase 2  barrier: every input is there
//   phase 3  load each tile reduced by the switch, store to own output
//   phase 4  barrier: nobody reads my input any more
//
// Cost: 4 hops, as one_shot. What comes in is bytes, what goes out n x bytes: each rank asks for
// everything. Each rank gets its own order of the sum.
#pragma once

#include "algorithms/all_reduce/one_shot.hpp"
#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/multicast_buffers.hpp"
#include "device/team.hpp"

namespace tutti {

struct AllReduceMulticastOneShot {
  using Kernel = MulticastKernel;
  using Types = SwitchReductions;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  // Not measured by anybody here: each rank's input goes out once for every rank that asks for it.
  static double wire(int ranks) { return ranks; }

  static constexpr Algorithm kAlgorithm{
      .id = "all_reduce/multicast_one_shot",
      .family = Family::kMulticast,
      .needs = kNeedsPeerAccess | kNeedsMulticast,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .order = Order::kNone,
      .cost = {.steps = 4, .wire = wire, .local = times<2>},
      .text = "every rank reads the sum of all inputs from the switch",
      .in_place_needs_staging = true,
      .takes = switch_reduces,
      .geometry = AllReduceOneShot::geometry,
      .host = host,
      .cuda = cuda};
  // Emulated, they load one rank's part after the other.
  static constexpr KernelPromises kPromises{.loads = 1, .barriers = 2};
  static constexpr Traffic kTraffic{.hops = "4", .wire = "n B out, B in"};

  template <class Reduction, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work);
};

// `asks`: whether this rank has the switch reduce; else it only gives its input.
template <class Reduction, class Team>
TUTTI_BODY Outcome reduce_all_by_switch(Team& team, const KernelArgs& work, bool asks) {
  using T = typename Reduction::Element;
  const std::size_t chunk = chunk_elements(work, sizeof(T));
  const Publish entry = first_publish(work);

  for (std::size_t done = 0; done < work.count || done == 0; done += chunk) {
    const Range part{done, work.count - done < chunk ? work.count - done : chunk};
    const std::size_t origin = work.stage_input ? done : 0;  // staging starts at each chunk anew

    if (work.stage_input) team.template copy_in<T>(part, origin);

    team.arrive(entry);
    const auto buffers = team.buffers();
    if (team.wait() != Outcome::kDone) return Outcome::kFailed;

    const Fabric<Reduction, Team> fabric(team, work, buffers);
    const Range asked{part.first, asks ? part.count : 0};
    team.template for_each_tile<T>(asked, [&](auto access, TileAt tile) {
      const auto value = fabric.reduce(access, {tile.first - origin, tile.count});
      team.template store<T>(work.output, access, tile, value);
    });

    if (team.barrier(Publish::kLoads) != Outcome::kDone) return Outcome::kFailed;
    if (chunk == 0) break;
  }
  return team.finish();
}

template <class Reduction, class Team>
TUTTI_BODY Outcome AllReduceMulticastOneShot::run(Team& team, const KernelArgs& work) {
  return reduce_all_by_switch<Reduction>(team, work, true);
}

}  // namespace tutti
