// reduce_scatter/pull_rows: reduce_scatter/pull of a matrix that is split along its last dimension:
// of each row, which is as long as TokenNorm::hidden says, a rank gets its part.
//
//   phase 1  stage in: a slot of every rank's parts (only for inputs that peers cannot address)
//   phase 2  barrier: every input is there
//   phase 3  load each tile of my parts from all ranks, reduce, store to own output
//   phase 4  barrier: nobody reads my input any more
//
// Cost: as pull. Rows whose parts are no whole tiles are done one after the other. Not in place:
// the output would lie in parts that peers still read.
#pragma once

#include "algorithms/descriptor.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/moving.hpp"
#include "algorithms/pieces.hpp"
#include "algorithms/reduction.hpp"
#include "algorithms/takes.hpp"

namespace tutti {

struct ReduceScatterPullRows {
  using Kernel = PeerKernel;
  using Types = EveryReduction;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  static constexpr Algorithm kAlgorithm{
      .id = "reduce_scatter/pull_rows",
      .collective = Collective::kReduceScatter,
      .family = Family::kOneShot,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .order = Order::kRankOrder,
      // As pull.
      .cost = {.steps = 4, .wire = pieces_wire, .local = own_piece_local},
      .text = "as pull, for a matrix that is split along its last dimension",
      .splits_rows = true,
      .takes = takes_everything,
      .geometry = two_shot_geometry,
      .host = host,
      .cuda = cuda};
  // Scaled bytes put aside where the tile begins, over the cut at the end of a row.
  static constexpr KernelPromises kPromises{
      .loads = kMaxCudaRanks, .stores = 1, .barriers = 2, .stack_bytes = 64};
  static constexpr Traffic kTraffic{.hops = "4", .wire = "(n-1)/n B"};

  template <class Reduction, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work);
};

// What is split: an output has so many columns of each row.
struct SplitRows {
  std::size_t columns;
  std::size_t others;  // columns of a row of the input that are not this output's

  TUTTI_BODY explicit SplitRows(const KernelArgs& work)
      : columns(work.norm.hidden / static_cast<unsigned>(work.ranks)),
        others(work.norm.hidden - columns) {}

  // Where in an input a tile of rank `rank`'s output comes from.
  TUTTI_BODY TileAt in_input(int rank, std::size_t row, TileAt tile) const {
    return {tile.first + row * others + static_cast<std::size_t>(rank) * columns, tile.count};
  }
};

// f(access, tile, row) for tiles of a part of an output, cut where rows end. What a slot holds at a
// place is the same block's in every pass. A tile that is as wide as accesses are is never cut.
template <class T, class Team, class F>
TUTTI_BODY void for_each_tile_of_rows(const Team& team, Range part, std::size_t columns, F&& f) {
  team.template for_each_tile<T>(part, [&](auto access, TileAt tile) {
    const std::size_t end = tile.first + static_cast<std::size_t>(tile.count);
    TUTTI_NO_UNROLL
    for (std::size_t at = tile.first; at < end;) {
      const std::size_t row = at / columns, next = (row + 1) * columns;
      const std::size_t last = next < end ? next : end;
      f(access, TileAt{at, static_cast<int>(last - at)}, row);
      at = last;
    }
  });
}

// As stage_slots() of reduce_scatter/pull.
template <class T, class Team>
TUTTI_BODY void stage_rows(const Team& team, const KernelArgs& work, const SplitRows& rows,
                           Range part, std::size_t slot) {
  TUTTI_NO_UNROLL
  for (int r = 0; r < work.ranks; ++r) {
    std::byte* const to =
        work.staging.at[work.rank] + static_cast<std::size_t>(r) * slot * sizeof(T);
    for_each_tile_of_rows<T>(
        team, part, rows.columns, [&](auto access, TileAt tile, std::size_t row) {
          const auto value = team.template load<T>(work.input, access, rows.in_input(r, row, tile));
          team.template store<T>(to, access, TileAt{tile.first - part.first, tile.count}, value);
        });
  }
}

template <class Reduction, class Team>
TUTTI_BODY Outcome ReduceScatterPullRows::run(Team& team, const KernelArgs& work) {
  using T = typename Reduction::Element;
  const SplitRows rows(work);
  const std::size_t piece = piece_of(work), mine = static_cast<std::size_t>(work.rank);
  const std::size_t slot = work.stage_input ? slot_of(work, work.ranks, sizeof(T)) : piece;
  publish_scalar<Reduction>(team, work);

  for (std::size_t done = 0; done < piece || done == 0; done += slot) {
    const Range part = cut(Range{done, slot}, piece);
    // Slots start at each pass anew.
    const std::size_t shift = mine * slot - done;
    (void)team.buffers(rows.columns * sizeof(T));  // which accesses parts and slots allow
    if (work.stage_input) stage_rows<T>(team, work, rows, part, slot);

    team.arrive(first_publish(work));
    const auto buffers = team.buffers(rows.columns * sizeof(T));
    if (team.wait() != Outcome::kDone) return Outcome::kFailed;

    const Scalars<Reduction, Team::kMaxRanks> scalars(team, work);
    for_each_tile_of_rows<T>(
        team, part, rows.columns, [&](auto access, TileAt tile, std::size_t row) {
          const TileAt at = work.stage_input ? TileAt{tile.first + shift, tile.count}
                                             : rows.in_input(work.rank, row, tile);
          const auto value = reduce_tile<Reduction>(team, buffers.inputs, access, at, scalars);
          team.template store<T>(work.output, access, tile, value);
        });

    if (team.barrier(Publish::kLoads) != Outcome::kDone) return Outcome::kFailed;
    if (slot == 0) break;
  }
  return team.finish();
}

}  // namespace tutti
