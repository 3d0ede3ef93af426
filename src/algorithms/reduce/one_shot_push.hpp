// reduce/one_shot_push: every rank sends its input to the root, which reduces what it is sent.
//
//   others   push each tile into my slot at the root
//   root     poll each tile of every other rank, reduce, store to own output
//
// Cost: 1 hop (a packet), (n-1) x bytes over the root's links; integers twice that. Nobody touches
// another rank's buffers, so any will do, and in place is safe.
#pragma once

#include "algorithms/columns.hpp"
#include "algorithms/instantiate.hpp"
#include "device/packets.hpp"

namespace tutti {

template <class Reduction, class Team>
TUTTI_BODY Outcome reduce_one_shot_push(Team& team, const KernelArgs& work) {
  using T = typename Reduction::Element;
  const Shares<Team::template tile_elements<T>()> tiles(work.count, 1);
  const Slice first = team.first_slice();
  const bool keeps = work.rank == work.root;

  team.launch_wait();
  team.ask_launch();
  const auto ahead = team.template load_tile<T>(tiles.tile(0, first));
  if (team.open_packets() != Outcome::kDone) return Outcome::kFailed;
  if (!keeps) {
    team.for_each_slice(tiles.slices, [&](Slice k) {
      const TileAt tile = tiles.tile(0, k);
      const auto words = k == first ? ahead : team.template load_tile<T>(tile);
      team.template push_to<T>(work.root, {0, k}, tile.count, words);
      return Outcome::kDone;
    });
  }
  team.announce();
  team.launch_trigger();
  if (!keeps) return team.close_packets();

  const Outcome outcome = team.for_each_slice(tiles.slices, [&](Slice k) {
    typename Team::Column column;
    const TileAt tile = tiles.tile(0, k);
    const auto mine = k == first ? ahead : team.template load_tile<T>(tile);
    const auto count = [&](int) { return tile.count; };
    if (team.template poll<T>({0, k}, count, column) != Outcome::kDone) return Outcome::kFailed;
    team.place_own(column, mine);
    const auto sum = reduce_column<Reduction>(team, column, tile.count, work.divisor);
    team.template store_tile<T>(tile, sum);
    return Outcome::kDone;
  });
  if (outcome != Outcome::kDone) return Outcome::kFailed;
  return team.close_packets();
}

template <class Team>
BodyOf<Team> host_reduce_one_shot_push(DataType dtype, OpKind op) {
  return with_column_reduction<Team>(dtype, op, [](auto reduction) -> BodyOf<Team> {
    return reduce_one_shot_push<typename decltype(reduction)::Type, Team>;
  });
}

}  // namespace tutti
