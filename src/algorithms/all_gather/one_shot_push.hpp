// all_gather/one_shot_push: every rank sends its input to everybody, and keeps what it is sent.
//
//   phase 1  push each tile into my slot at every other rank, store it at my place in own output
//   phase 2  poll each tile of every other rank, store it at that rank's place
//
// Cost: 1 hop (a packet), 2 (n-1)/n x bytes over each rank's links: every pattern has to arrive as
// it is, so bits travel beside marks. Nobody touches another rank's buffers, so any will do, and in
// place is safe.
#pragma once

#include "algorithms/descriptor.hpp"
#include "algorithms/moving.hpp"
#include "algorithms/pieces.hpp"
#include "device/packets.hpp"

namespace tutti {

struct AllGatherOneShotPush {
  using Kernel = PacketKernel;
  using Types = MovedBytes;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  static constexpr Algorithm kAlgorithm{
      .id = "all_gather/one_shot_push",
      .collective = Collective::kAllGather,
      .family = Family::kOneShot,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .cost = {.steps = 2.4,
               .host_steps = 5.5,
               .wire = pieces_wire,
               .local = packets_of_pieces_local},
      .text = "every rank sends its input to all ranks, in words that are their own flags",
      .peers_read_input = false,
      .starts_early = true,
      .packets = packets_of_pieces,
      .takes = moves,
      .geometry = shared_packets_geometry,
      .host = host,
      .cuda = cuda};
  static constexpr KernelPromises kPromises = kPollsTogether;
  static constexpr Traffic kTraffic{.hops = "1", .wire = "2 (n-1)/n B"};

  template <class, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work);
};

template <class, class Team>
TUTTI_BODY Outcome AllGatherOneShotPush::run(Team& team, const KernelArgs& work) {
  using T = std::uint8_t;
  const std::size_t piece = piece_of(work);
  const Shares<Team::template tile_elements<T>()> tiles(piece, 1);
  const auto place = [&](int rank) { return work.output + static_cast<std::size_t>(rank) * piece; };
  const Slice first = team.first_slice();

  team.launch_wait();
  team.ask_launch();
  const auto ahead = team.template load_tile<T>(tiles.tile(0, first));
  if (team.open_packets() != Outcome::kDone) return Outcome::kFailed;
  team.for_each_slice(tiles.slices, [&](Slice k) {
    const TileAt tile = tiles.tile(0, k);
    const auto words = k == first ? ahead : team.template load_tile<T>(tile);
    team.template push_all<T>({0, k}, tile.count, words);
    team.template store_to<T>(place(work.rank), tile, words);
    return Outcome::kDone;
  });
  team.announce();
  team.launch_trigger();

  const Outcome outcome = team.for_each_slice(tiles.slices, [&](Slice k) {
    const TileAt tile = tiles.tile(0, k);
    typename Team::Column column;
    const auto count = [&](int) { return tile.count; };
    if (team.template poll<T>({0, k}, count, column) != Outcome::kDone) return Outcome::kFailed;
    TUTTI_UNROLL
    for (int r = 0; r < Team::kMaxRanks; ++r) {
      if (r >= team.ranks() || r == work.rank) continue;
      team.template store_to<T>(place(r), tile, column.at[r]);
    }
    return Outcome::kDone;
  });
  if (outcome != Outcome::kDone) return Outcome::kFailed;
  return team.close_packets();
}

}  // namespace tutti
