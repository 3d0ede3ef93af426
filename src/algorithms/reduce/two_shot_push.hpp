// reduce/two_shot_push: every rank sends each rank but the root its share, which reduces it and
// sends the sum to the root.
//
//   phase 1  push each tile of share r to rank r
//   phase 2  all but the root: poll each tile of my share from every other rank, reduce, push the
//            sum to the root
//   phase 3  root: poll each tile of every share from its owner, store to own output
//
// Cost: 2 hops (two packets), 1 x bytes over each rank's links; integers twice that. No barrier
// between phases: slice k of every share is one thread's from beginning to end. Nobody touches
// another rank's buffers, so any will do. In place is safe: a tile of the root's output is stored
// when its sum is there, and that holds its input.
#pragma once

#include "algorithms/columns.hpp"
#include "algorithms/costs.hpp"
#include "algorithms/dealt_packets.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/takes.hpp"

namespace tutti {

struct ReduceTwoShotPush {
  using Kernel = PacketKernel;
  using Types = ColumnReductions;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  static constexpr Algorithm kAlgorithm{
      .id = "reduce/two_shot_push",
      .collective = Collective::kReduce,
      .family = Family::kTwoShot,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .order = Order::kRankOrder,
      .cost = {.steps = 3.1,
               .steps_per_rank = 0.3,
               .host_steps = 9,
               .wire = root_wire,
               .local = times<10>},
      .text = "every rank except the root reduces a share and sends it to the root, in packets",
      .peers_read_input = false,
      .starts_early = true,
      .packets = dealt_packets,
      .takes = takes_no_multipliers,
      .geometry = dealt_packets_geometry,
      .host = host,
      .cuda = cuda};
  static constexpr KernelPromises kPromises{
      .loads = kMaxCudaRanks, .narrow = 1, .stack_bytes = 48, .local = 2};
  static constexpr Traffic kTraffic{.hops = "2", .wire = "B"};

  template <class Reduction, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work);
};

template <class Reduction, class Team>
TUTTI_BODY Outcome ReduceTwoShotPush::run(Team& team, const KernelArgs& work) {
  using T = typename Reduction::Element;
  const DealtShares<Team::template tile_elements<T>()> shares(work);
  const bool alone = work.ranks == 1, keeps = work.rank == work.root;

  team.launch_wait();
  team.ask_launch();
  if (team.open_packets() != Outcome::kDone) return Outcome::kFailed;
  team.for_each_slice(shares.slices(), [&](Slice k) {
    TUTTI_NO_UNROLL
    for (int index = 0; index < shares.dealers; ++index) {
      const TileAt tile = shares.of_index(index, k);
      const int rank = shares.rank_of(index);
      if (tile.count == 0 || rank == work.rank || alone) continue;
      team.template push_to<T>(rank, {0, k}, tile.count, team.template load_tile<T>(tile));
    }
    return Outcome::kDone;
  });
  team.announce();

  if (keeps && !alone) {
    // A rank that finds another operation sends no sum, so the root has to look for that before.
    if (team.close_packets() != Outcome::kDone) return Outcome::kFailed;
    return team.for_each_slice(shares.slices(), [&](Slice k) {
      typename Team::Column column;
      const auto count = [&](int rank) { return shares.tile(rank, k).count; };
      if (team.template poll_some<T>({0, k}, count, column) != Outcome::kDone) {
        return Outcome::kFailed;
      }
      team.template store_column<T>(shares, k, column);
      return Outcome::kDone;
    });
  }

  const Outcome outcome = team.for_each_slice(shares.slices(), [&](Slice k) {
    typename Team::Column column;
    const TileAt mine = alone ? shares.of_index(0, k) : shares.tile(work.rank, k);
    if (mine.count == 0) return Outcome::kDone;
    const auto own = team.template load_tile<T>(mine);
    const auto count = [&](int) { return mine.count; };
    if (team.template poll<T>({0, k}, count, column) != Outcome::kDone) {
      return Outcome::kFailed;
    }
    team.place_own(column, own);
    const auto sum = reduce_column<Reduction>(team, column, mine.count, work.divisor);
    if (alone) team.template store_tile<T>(mine, sum);
    if (!alone) team.template push_to<T>(work.root, {0, k}, mine.count, sum);
    return Outcome::kDone;
  });
  if (outcome != Outcome::kDone) return Outcome::kFailed;
  return team.close_packets();
}

}  // namespace tutti
