// all_reduce/multicast_two_shot: each rank has the switch reduce its shard, and store it
// everywhere.
//
//   phase 1  stage in (only for buffers that peers cannot address)
//   phase 2  barrier: every input is there
//   phase 3  load each tile of my shard reduced by the switch, store it to all ranks at once
//   phase 4  barrier: every shard is written, and nobody reads my input any more
//   phase 5  stage out (as phase 1)
//
// Cost: 5 hops, as two_shot; (1 + 1/n) x bytes each way over every rank's links. In place is safe
// as there. One rank decides on each sum, so all have the same.
#pragma once

#include "algorithms/all_reduce/two_shot.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/multicast_buffers.hpp"
#include "device/team.hpp"

namespace tutti {

struct AllReduceMulticastTwoShot {
  using Kernel = MulticastKernel;
  using Types = SwitchReductions;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  static double wire(int ranks) { return 1 + 1.0 / ranks; }

  static constexpr Algorithm kAlgorithm{
      .id = "all_reduce/multicast_two_shot",
      .family = Family::kMulticast,
      .needs = kNeedsPeerAccess | kNeedsMulticast,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .order = Order::kSameOnAllRanks,
      .cost = {.steps = 5, .wire = wire, .local = AllReduceTwoShot::local},
      .text = "each rank reads the sum of its shard from the switch, which stores it to all ranks",
      .peers_write_output = true,
      .takes = switch_reduces,
      .geometry = two_shot_geometry,
      .host = host,
      .cuda = cuda};
  static constexpr KernelPromises kPromises{.loads = 1, .barriers = 2};
  static constexpr Traffic kTraffic{.hops = "5", .wire = "(1 + 1/n) B"};

  template <class Reduction, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work);
};

template <class Reduction, class Team>
TUTTI_BODY Outcome AllReduceMulticastTwoShot::run(Team& team, const KernelArgs& work) {
  using T = typename Reduction::Element;
  constexpr std::size_t kUnit = Team::template tile_elements<T>();
  const std::size_t chunk = chunk_elements(work, sizeof(T));
  const Publish entry = first_publish(work);

  for (std::size_t done = 0; done < work.count || done == 0; done += chunk) {
    const std::size_t origin = work.stage_input ? done : 0;  // staging starts at each chunk anew
    const auto share = [&](int rank) {                       // as in two_shot
      return cut(shard(Range{done, chunk}, rank, work.ranks, kUnit), work.count);
    };

    if (work.stage_input) {
      for (int r = 0; r < work.ranks; ++r) team.template copy_in<T>(share(r), origin);
    }

    team.arrive(entry);
    const auto buffers = team.buffers();
    if (team.wait() != Outcome::kDone) return Outcome::kFailed;

    const Fabric<Reduction, Team> fabric(team, work, buffers);
    team.template for_each_tile<T>(share(work.rank), [&](auto access, TileAt tile) {
      const TileAt at{tile.first - origin, tile.count};
      fabric.store(access, at, fabric.reduce(access, at));
    });

    if (team.barrier(Publish::kStores) != Outcome::kDone) return Outcome::kFailed;

    if (work.stage_output) {
      for (int r = 0; r < work.ranks; ++r) team.template copy_out<T>(share(r), origin);
    }
    if (chunk == 0) break;
  }
  return team.finish();
}

}  // namespace tutti
