// broadcast/two_shot_push: the root sends each other rank its share, which sends it to the rest.
//
//   root     push each tile of share r to rank r, store it to own output
//   others   poll each tile of my share from the root, push it to all but the root, store it to own
//            output; poll each tile of every other share from its owner, store it to own output
//
// Cost: 2 hops (two packets), 2 x bytes over the root's links: every pattern has to arrive as it
// is, so bits travel beside marks. No barrier between the hops: slice k of every share is one
// thread's from beginning to end. Nobody touches another rank's buffers, so any will do, and in
// place is safe.
#pragma once

#include "algorithms/costs.hpp"
#include "algorithms/dealt_packets.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/moving.hpp"

namespace tutti {

struct BroadcastTwoShotPush {
  using Kernel = PacketKernel;
  using Types = MovedBytes;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  static constexpr Algorithm kAlgorithm{
      .id = "broadcast/two_shot_push",
      .collective = Collective::kBroadcast,
      .family = Family::kTwoShot,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .cost = {.steps = 3.0,
               .steps_per_rank = 0.1,
               .host_steps = 10,
               .wire = root_wire,
               .local = times<8>},
      .text = "the root sends one share to each rank, which sends it to the others, in packets",
      .peers_read_input = false,
      .starts_early = true,
      .packets = dealt_packets,
      .takes = moves,
      .geometry = dealt_packets_geometry,
      .host = host,
      .cuda = cuda};
  static constexpr KernelPromises kPromises = kPollsTogether;
  static constexpr Traffic kTraffic{.hops = "2",
                                    .wire = "2 B from the root, 2 (n-2)/(n-1) B from others"};

  template <class, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work);
};

template <class, class Team>
TUTTI_BODY Outcome BroadcastTwoShotPush::run(Team& team, const KernelArgs& work) {
  using T = std::uint8_t;
  const DealtShares<Team::template tile_elements<T>()> shares(work);

  team.launch_wait();
  team.ask_launch();
  if (team.open_packets() != Outcome::kDone) return Outcome::kFailed;
  if (work.rank == work.root) {
    team.for_each_slice(shares.slices(), [&](Slice k) {
      TUTTI_NO_UNROLL
      for (int index = 0; index < shares.dealers; ++index) {
        const TileAt tile = shares.of_index(index, k);
        if (tile.count == 0) continue;
        const auto words = team.template load_tile<T>(tile);
        const int rank = shares.rank_of(index);
        if (rank < work.ranks) team.template push_to<T>(rank, {0, k}, tile.count, words);
        team.template store_tile<T>(tile, words);
      }
      return Outcome::kDone;
    });
  }
  team.announce();
  if (work.rank == work.root) return team.close_packets();

  Outcome outcome = team.for_each_slice(shares.slices(), [&](Slice k) {
    const TileAt mine = shares.tile(work.rank, k);
    if (mine.count == 0) return Outcome::kDone;
    typename Team::Words words;
    const Outcome come = team.template poll_from<T>(work.root, {0, k}, mine.count, words);
    if (come != Outcome::kDone) return come;
    TUTTI_NO_UNROLL
    for (int r = 0; r < work.ranks; ++r) {
      if (r == work.rank || r == work.root) continue;
      team.template push_to<T>(r, {0, k}, mine.count, words);
    }
    team.template store_tile<T>(mine, words);
    return Outcome::kDone;
  });
  if (outcome != Outcome::kDone) return Outcome::kFailed;

  outcome = team.for_each_slice(shares.slices(), [&](Slice k) {
    typename Team::Column column;
    const auto count = [&](int rank) { return shares.tile(rank, k).count; };
    if (team.template poll_some<T>({0, k}, count, column) != Outcome::kDone) {
      return Outcome::kFailed;
    }
    team.template store_column<T>(shares, k, column);
    return Outcome::kDone;
  });
  if (outcome != Outcome::kDone) return Outcome::kFailed;
  return team.close_packets();
}

}  // namespace tutti
