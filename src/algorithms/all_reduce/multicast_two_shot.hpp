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

#include "algorithms/multicast_buffers.hpp"
#include "device/team.hpp"

namespace tutti {

template <class Reduction, class Team>
TUTTI_BODY Outcome all_reduce_multicast_two_shot(Team& team, const KernelArgs& work) {
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

template <class Team>
BodyOf<Team> host_all_reduce_multicast_two_shot(DataType dtype, OpKind op) {
  return with_switch_reduction<Team>(dtype, op, [](auto reduction) -> BodyOf<Team> {
    return all_reduce_multicast_two_shot<typename decltype(reduction)::Type, Team>;
  });
}

}  // namespace tutti
