// all_reduce/two_shot_push: every rank sends each rank its share, which reduces it and sends the
// result to everybody.
//
//   phase 1  push each tile of share r into my slot at rank r
//   phase 2  poll each tile of my share from every other rank, reduce, push the result to them,
//            and store it to own output
//   phase 3  poll each tile of every other share from its owner, store to own output
//
// Cost: 2 hops (two packets), 2(n-1)/n x bytes over each rank's links; integers twice that. No
// barrier between phases: slice k of every share is one thread's from beginning to end. In place is
// safe: a tile of the output is stored when its result is there, and that holds its input.
#pragma once

#include "algorithms/columns.hpp"
#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/epilogue.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/takes.hpp"
#include "device/packets.hpp"

namespace tutti {

struct AllReduceTwoShotPush {
  using Kernel = ExactPacketKernel;
  using Types = ColumnReductions;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  static constexpr Algorithm kAlgorithm{
      .id = "all_reduce/two_shot_push",
      .family = Family::kTwoShot,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .order = Order::kRankOrder,
      .cost = {.steps = 1.8,
               .steps_per_rank = 0.3,
               .host_steps = 9,
               .wire = two_shot_wire,
               .local = times<16>},
      .text = "every rank sends each rank its share; that rank sends the sum to all, in packets",
      .peers_read_input = false,
      .starts_early = true,
      .packets = shared_packets,
      .takes = takes_no_multipliers,
      .geometry = shared_packets_geometry,
      .host = host,
      .cuda = cuda};
  static constexpr KernelPromises kPromises{
      .loads = kMaxCudaRanks, .narrow = 1, .loops = 2, .local = 2};
  static constexpr Traffic kTraffic{.hops = "2", .wire = "2 (n-1)/n B"};

  template <class Reduction, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work);
};

template <class Reduction, class Team, class Epilogue = NoEpilogue>
TUTTI_BODY Outcome all_reduce_two_shot_push(Team& team, const KernelArgs& work) {
  using T = typename Reduction::Element;
  using Column = typename Team::Column;
  constexpr int kScatter = 0, kGather = 1;  // parts of a generation
  const Shares<Team::template tile_elements<T>()> shares(work.count, team.ranks());
  const Slice first = team.first_slice();

  team.launch_wait();
  team.ask_launch();
  const Column ahead = team.template load_column<T>(shares, first);
  if (team.open_packets() != Outcome::kDone) return Outcome::kFailed;
  team.for_each_slice(shares.slices, [&](Slice k) {
    const Column column = k == first ? ahead : team.template load_column<T>(shares, k);
    const auto count = [&](int rank) { return shares.tile(rank, k).count; };
    team.template push_column<T>({kScatter, k}, count, column);
    return Outcome::kDone;
  });
  team.announce();

  Outcome outcome = team.for_each_slice(shares.slices, [&](Slice k) {
    Column column;
    const TileAt mine = shares.tile(work.rank, k);
    const auto own = team.template load_tile<T>(mine);
    const auto operand = Epilogue::template load<T>(team, work, mine);
    const auto count = [&](int) { return mine.count; };
    if (team.template poll<T>({kScatter, k}, count, column) != Outcome::kDone) {
      return Outcome::kFailed;
    }
    team.place_own(column, own);
    const auto sum = Epilogue::template apply<T, Team>(
        reduce_column<Reduction>(team, column, mine.count, work.divisor), operand);
    team.template push_all<T>({kGather, k}, mine.count, sum);
    team.template store_tile<T>(mine, sum);
    return Outcome::kDone;
  });
  if (outcome != Outcome::kDone) return Outcome::kFailed;
  if constexpr (Epilogue::kTriggers) team.launch_trigger();

  outcome = team.for_each_slice(shares.slices, [&](Slice k) {
    Column column;
    const auto count = [&](int rank) { return shares.tile(rank, k).count; };
    if (team.template poll<T>({kGather, k}, count, column) != Outcome::kDone) {
      return Outcome::kFailed;
    }
    team.template store_column<T>(shares, k, column);
    return Outcome::kDone;
  });
  if (outcome != Outcome::kDone) return Outcome::kFailed;
  return team.close_packets();
}

template <class Reduction, class Team>
TUTTI_BODY Outcome AllReduceTwoShotPush::run(Team& team, const KernelArgs& work) {
  return all_reduce_two_shot_push<Reduction>(team, work);
}

}  // namespace tutti
