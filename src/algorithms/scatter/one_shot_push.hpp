// scatter/one_shot_push: the root sends each rank its piece.
//
//   root     push tile k of each rank's piece into the slot there, store that of the own to output
//   others   poll each tile from the root, store it to own output
//
// Cost: 1 hop (a packet), 2 (n-1)/n x bytes over the root's links: every pattern has to arrive as
// it is, so bits travel beside marks. Nobody touches another rank's buffers, so any will do.
#pragma once

#include "algorithms/descriptor.hpp"
#include "algorithms/moving.hpp"
#include "algorithms/pieces.hpp"
#include "device/packets.hpp"

namespace tutti {

struct ScatterOneShotPush {
  using Kernel = PacketKernel;
  using Types = MovedBytes;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  static constexpr Algorithm kAlgorithm{
      .id = "scatter/one_shot_push",
      .collective = Collective::kScatter,
      .family = Family::kOneShot,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .cost = {.steps = 2.4,
               .host_steps = 5.5,
               .wire = pieces_wire,
               .local = packets_of_pieces_local},
      .text = "the root sends each rank its block, in words that are their own flags",
      .peers_read_input = false,
      .starts_early = true,
      .packets = packets_of_pieces,
      .takes = moves,
      .geometry = shared_packets_geometry,
      .host = host,
      .cuda = cuda};
  static constexpr KernelPromises kPromises = kPollsOne;
  static constexpr Traffic kTraffic{.hops = "1", .wire = "2 (n-1)/n B, from the root"};

  template <class, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work);
};

template <class, class Team>
TUTTI_BODY Outcome ScatterOneShotPush::run(Team& team, const KernelArgs& work) {
  using T = std::uint8_t;
  using Column = typename Team::Column;
  const Shares<Team::template tile_elements<T>()> tiles(piece_of(work), 1);
  const std::byte* const own = work.input + static_cast<std::size_t>(work.rank) * piece_of(work);
  const Slice first = team.first_slice();
  const bool sends = work.rank == work.root;

  team.launch_wait();
  team.ask_launch();
  Column ahead;
  if (sends) ahead = load_pieces<T>(team, work, tiles.tile(0, first));
  if (team.open_packets() != Outcome::kDone) return Outcome::kFailed;
  if (sends) {
    team.for_each_slice(tiles.slices, [&](Slice k) {
      const TileAt tile = tiles.tile(0, k);
      const Column column = k == first ? ahead : load_pieces<T>(team, work, tile);
      team.template push_column<T>(
          {0, k}, [&](int) { return tile.count; }, column);
      const auto kept = team.template load_from<T>(own, tile);
      team.template store_tile<T>(tile, kept);
      return Outcome::kDone;
    });
  }
  team.announce();
  team.launch_trigger();
  if (sends) return team.close_packets();

  const Outcome outcome = team.for_each_slice(tiles.slices, [&](Slice k) {
    const TileAt tile = tiles.tile(0, k);
    typename Team::Words words;
    const Outcome come = team.template poll_from<T>(work.root, {0, k}, tile.count, words);
    if (come == Outcome::kDone) team.template store_tile<T>(tile, words);
    return come;
  });
  if (outcome != Outcome::kDone) return Outcome::kFailed;
  return team.close_packets();
}

}  // namespace tutti
