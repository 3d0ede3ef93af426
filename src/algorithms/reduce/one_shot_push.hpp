// reduce/one_shot_push: every rank sends its input to the root, which reduces what it is sent.
//
//   others   push each tile into my slot at the root
//   root     poll each tile of every other rank, reduce, store to own output
//
// Cost: 1 hop (a packet), (n-1) x bytes over the root's links; integers twice that. Nobody touches
// another rank's buffers, so any will do, and in place is safe.
#pragma once

#include "algorithms/columns.hpp"
#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/takes.hpp"
#include "device/packets.hpp"

namespace tutti {

struct ReduceOneShotPush {
  using Kernel = PacketKernel;
  using Types = ColumnReductions;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  static double local(int ranks) { return 4 + ranks; }

  static constexpr Algorithm kAlgorithm{
      .id = "reduce/one_shot_push",
      .collective = Collective::kReduce,
      .family = Family::kOneShot,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .order = Order::kRankOrder,
      .cost = {.steps = 2, .host_steps = 5.5, .wire = one_shot_wire, .local = local},
      .text = "every rank sends its input to the root, in words that are their own flags",
      .peers_read_input = false,
      .starts_early = true,
      .packets = whole_packets,
      .takes = takes_no_multipliers,
      .geometry = whole_packets_geometry,
      .host = host,
      .cuda = cuda};
  static constexpr KernelPromises kPromises = kPollsTogether;
  static constexpr Traffic kTraffic{.hops = "1", .wire = "(n-1) B, to the root"};

  template <class Reduction, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work);
};

template <class Reduction, class Team>
TUTTI_BODY Outcome ReduceOneShotPush::run(Team& team, const KernelArgs& work) {
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

}  // namespace tutti
