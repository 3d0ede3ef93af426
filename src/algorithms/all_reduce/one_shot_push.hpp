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
#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/epilogue.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/takes.hpp"
#include "device/packets.hpp"

namespace tutti {

struct AllReduceOneShotPush {
  using Kernel = ExactPacketKernel;
  using Types = ColumnReductions;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  // On the host words are stored and loaded one by one, in own slots as well: measured on 2 ranks
  // of a virtual machine, 0.16 ns a byte each time, as much as memcpy takes for two; and below 1
  // KiB 0.3 us more than one_shot takes, and 0.9 us more than two_shot.
  static double local(int ranks) { return 7 * ranks + 1; }

  static constexpr Algorithm kAlgorithm{
      .id = "all_reduce/one_shot_push",
      .family = Family::kOneShot,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .order = Order::kRankOrder,
      .cost = {.steps = 1.4, .host_steps = 5.5, .wire = one_shot_wire, .local = local},
      .text = "every rank sends its input to all ranks, in words that are their own flags",
      .peers_read_input = false,
      .starts_early = true,
      .packets = whole_packets,
      .takes = takes_no_multipliers,
      .geometry = whole_packets_geometry,
      .host = host,
      .cuda = cuda};
  static constexpr KernelPromises kPromises = kPollsTogether;
  static constexpr Traffic kTraffic{.hops = "1", .wire = "(n-1) B"};

  template <class Reduction, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work);
};

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

template <class Reduction, class Team>
TUTTI_BODY Outcome AllReduceOneShotPush::run(Team& team, const KernelArgs& work) {
  return all_reduce_one_shot_push<Reduction>(team, work);
}

}  // namespace tutti
