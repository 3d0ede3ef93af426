// reduce_scatter_v/one_shot_push: reduce_scatter/one_shot_push of pieces that are as long as they
// like. All counts are the host's.
//
//   phase 1  push each tile of piece r into my slot at rank r
//   phase 2  poll each tile of my piece from every other rank, reduce, store to own output
//
// Cost: 1 hop (a packet), what this rank has of the others' pieces over its links; integers twice
// that. Nobody touches another rank's buffers, so any will do, and in place is safe: my own piece,
// which does not travel, is loaded by the thread that then overwrites it.
#pragma once

#include "algorithms/instantiate.hpp"
#include "algorithms/reduce_scatter/one_shot_push.hpp"
#include "algorithms/uneven.hpp"

namespace tutti {

template <class Reduction, class Team>
TUTTI_BODY Outcome reduce_scatter_v_one_shot_push(Team& team, const KernelArgs& work,
                                                  const PieceCounts& counts) {
  using T = typename Reduction::Element;
  using Column = typename Team::Column;
  using Tiles = Shares<Team::template tile_elements<T>()>;
  const Range mine = counts.sent[work.rank];
  const std::byte* const own = work.input + mine.first * sizeof(T);
  const Tiles tiles(mine.count, 1), longest(piece_of(work), 1);

  team.launch_wait();
  team.ask_launch();
  if (team.open_packets() != Outcome::kDone) return Outcome::kFailed;
  team.for_each_slice(longest.slices, [&](Slice k) {
    const auto tile_of = [&](int rank) { return Tiles(counts.sent[rank].count, 1).tile(0, k); };
    Column column;
    TUTTI_UNROLL
    for (int step = 0; step + 1 < Team::kMaxRanks; ++step) {
      if (step >= team.others()) break;
      const int rank = rank_behind(work, step);
      const std::byte* const from = work.input + counts.sent[rank].first * sizeof(T);
      column.at[step] = team.template load_from<T>(from, tile_of(rank));
    }
    team.template push_some<T>(
        {0, k}, [&](int rank) { return tile_of(rank).count; }, column);
    return Outcome::kDone;
  });
  team.announce();
  team.launch_trigger();

  return reduce_polled<Reduction>(team, work, tiles, own);
}

template <class Team>
BodyOf<Team> host_reduce_scatter_v_one_shot_push(DataType dtype, OpKind op) {
  return with_column_reduction<Team>(dtype, op, [](auto reduction) -> BodyOf<Team> {
    using Reduced = typename decltype(reduction)::Type;
    return [](Team& team, const KernelArgs& work) {
      return reduce_scatter_v_one_shot_push<Reduced>(team, work, *work.counts);
    };
  });
}

}  // namespace tutti
