// all_reduce/one_shot_push: every rank sends its input to everybody, and reduces what it is sent.
//
//   phase 1  push each tile into my slot at every other rank
//   phase 2  poll each tile of every other rank, reduce, store to own output
//
// Cost: 1 hop (a packet), (n-1) x bytes over each rank's links; integers twice that. Nobody touches
// another rank's buffers, so any will do, and in place is safe: a tile of the output is stored by
// the thread that has pushed the same tile of the input.
#pragma once

#include "algorithms/columns.hpp"
#include "algorithms/epilogue.hpp"
#include "algorithms/instantiate.hpp"
#include "device/packets.hpp"

namespace tutti {

template <class Reduction, class Team, class Epilogue = NoEpilogue>
TUTTI_BODY Outcome all_reduce_one_shot_push(Team& team, const KernelArgs& work) {
  using T = typename Reduction::Element;
  const Shares<Team::template tile_elements<T>()> whole(work.count, 1);
  const Slice first = team.first_slice();

  team.launch_wait();
  team.ask_launch();
  const auto ahead = team.template load_tile<T>(whole.tile(0, first));
  if (team.open_packets() != Outcome::kDone) return Outcome::kFailed;
  team.for_each_slice(whole.slices, [&](Slice k) {
    const TileAt tile = whole.tile(0, k);
    const auto words = k == first ? ahead : team.template load_tile<T>(tile);
    team.template push_all<T>({0, k}, tile.count, words);
    return Outcome::kDone;
  });
  team.announce();
  if constexpr (Epilogue::kTriggers) team.launch_trigger();

  const Outcome outcome = team.for_each_slice(whole.slices, [&](Slice k) {
    const TileAt tile = whole.tile(0, k);
    typename Team::Column column;
    const auto own = team.template load_tile<T>(tile);
    const auto operand = Epilogue::template load<T>(team, work, tile);
    const auto count = [&](int) { return tile.count; };
    if (team.template poll<T>({0, k}, count, column) != Outcome::kDone) return Outcome::kFailed;
    team.place_own(column, own);
    const auto sum = Epilogue::template apply<T, Team>(
        reduce_column<Reduction>(team, column, tile.count, work.divisor), operand);
    team.template store_tile<T>(tile, sum);
    return Outcome::kDone;
  });
  if (outcome != Outcome::kDone) return Outcome::kFailed;
  return team.close_packets();
}

template <class Team>
BodyOf<Team> host_all_reduce_one_shot_push(DataType dtype, OpKind op) {
  return with_column_reduction<Team>(dtype, op, [](auto reduction) -> BodyOf<Team> {
    return all_reduce_one_shot_push<typename decltype(reduction)::Type, Team>;
  });
}

}  // namespace tutti
