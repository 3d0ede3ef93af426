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

#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/moving.hpp"
#include "algorithms/reduce_scatter/one_shot_push.hpp"
#include "algorithms/takes.hpp"
#include "algorithms/uneven.hpp"
#include "device/counts.hpp"

namespace tutti {

struct ReduceScatterVOneShotPush {
  using Kernel = PacketKernel;
  using Types = ColumnReductions;
  using Beside = PieceCounts;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  static constexpr Algorithm kAlgorithm{
      .id = "reduce_scatter_v/one_shot_push",
      .collective = Collective::kReduceScatterV,
      .family = Family::kOneShot,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .order = Order::kRankOrder,
      .cost = {.steps = 1.1,
               .steps_per_rank = 0.15,
               .host_steps = 5.5,
               .wire = pieces_wire,
               .local = times<8>},
      .text = "every rank sends each rank its block, in words that are their own flags",
      .peers_read_input = false,
      .starts_early = true,
      .counts_on_host = true,
      .packets = packets_of_pieces,
      .takes = takes_no_multipliers,
      .geometry = shared_packets_geometry,
      .host = host,
      .cuda = cuda};
  static constexpr KernelPromises kPromises = kPollsTogether;
  static constexpr Traffic kTraffic{.hops = "1", .wire = "(n-1)/n B"};

  template <class Reduction, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work, const PieceCounts& counts);
};

template <class Reduction, class Team>
TUTTI_BODY Outcome ReduceScatterVOneShotPush::run(Team& team, const KernelArgs& work,
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

}  // namespace tutti
