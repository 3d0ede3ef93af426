// reduce_scatter/one_shot_push: every rank sends each rank its piece, which reduces what it is
// sent.
//
//   phase 1  push each tile of piece r into my slot at rank r
//   phase 2  poll each tile of my piece from every other rank, reduce, store to own output
//
// Cost: 1 hop (a packet), (n-1)/n x bytes over each rank's links; integers twice that. Nobody
// touches another rank's buffers, so any will do, and in place is safe: my own piece, which does
// not travel, is loaded by the thread that then overwrites it.
#pragma once

#include "algorithms/columns.hpp"
#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/moving.hpp"
#include "algorithms/pieces.hpp"
#include "algorithms/takes.hpp"
#include "device/packets.hpp"

namespace tutti {

struct ReduceScatterOneShotPush {
  using Kernel = ExactPacketKernel;
  using Types = ColumnReductions;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  static constexpr Algorithm kAlgorithm{
      .id = "reduce_scatter/one_shot_push",
      .collective = Collective::kReduceScatter,
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
      .packets = packets_of_pieces,
      .takes = takes_no_multipliers,
      .geometry = shared_packets_geometry,
      .host = host,
      .cuda = cuda};
  static constexpr KernelPromises kPromises = kPollsTogether;
  static constexpr Traffic kTraffic{.hops = "1", .wire = "(n-1)/n B"};

  template <class Reduction, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work);
};

// Polls each tile of this rank's piece from every other rank, reduces it with the own one, and
// stores it.
template <class Reduction, class Team, class Tiles>
TUTTI_BODY Outcome reduce_polled(Team& team, const KernelArgs& work, const Tiles& tiles,
                                 const std::byte* own) {
  using T = typename Reduction::Element;
  const Outcome outcome = team.for_each_slice(tiles.slices, [&](Slice k) {
    typename Team::Column column;
    const TileAt tile = tiles.tile(0, k);
    const auto mine = team.template load_from<T>(own, tile);
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

template <class Reduction, class Team>
TUTTI_BODY Outcome ReduceScatterOneShotPush::run(Team& team, const KernelArgs& work) {
  using T = typename Reduction::Element;
  using Column = typename Team::Column;
  const std::size_t piece = piece_of(work);
  const Shares<Team::template tile_elements<T>()> tiles(piece, 1);
  const std::byte* const own = work.input + static_cast<std::size_t>(work.rank) * piece * sizeof(T);
  const Slice first = team.first_slice();

  team.launch_wait();
  team.ask_launch();
  const Column ahead = load_pieces<T>(team, work, tiles.tile(0, first));
  if (team.open_packets() != Outcome::kDone) return Outcome::kFailed;
  team.for_each_slice(tiles.slices, [&](Slice k) {
    const TileAt tile = tiles.tile(0, k);
    const Column column = k == first ? ahead : load_pieces<T>(team, work, tile);
    team.template push_column<T>(
        {0, k}, [&](int) { return tile.count; }, column);
    return Outcome::kDone;
  });
  team.announce();
  team.launch_trigger();

  return reduce_polled<Reduction>(team, work, tiles, own);
}

}  // namespace tutti
