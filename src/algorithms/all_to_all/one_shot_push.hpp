// all_to_all/one_shot_push: every rank sends each rank its piece, and keeps what it is sent.
//
//   phase 1  push tile k of each rank's piece into my slot there, store that of my own to output
//   phase 2  poll tile k of every other rank, store it at that rank's place
//
// Cost: 1 hop (a packet), 2 (n-1)/n x bytes over each rank's links: every pattern has to arrive as
// it is, so bits travel beside marks. Nobody touches another rank's buffers, so any will do.
#pragma once

#include "algorithms/descriptor.hpp"
#include "algorithms/moving.hpp"
#include "algorithms/pieces.hpp"
#include "device/packets.hpp"

namespace tutti {

struct AllToAllOneShotPush {
  using Kernel = PacketKernel;
  using Types = MovedBytes;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  static constexpr Algorithm kAlgorithm{
      .id = "all_to_all/one_shot_push",
      .collective = Collective::kAllToAll,
      .family = Family::kOneShot,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .cost = {.steps = 2.4,
               .host_steps = 5.5,
               .wire = pieces_wire,
               .local = packets_to_each_local},
      .text = "every rank sends each rank its block, in words that are their own flags",
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

// Pieces of equally many tiles, of which only the last one may be short. Tile k of all of them
// belongs to one thread.
template <int kTileElements>
struct Pieces {
  std::size_t piece;
  Shares<kTileElements> tiles;

  TUTTI_BODY explicit Pieces(std::size_t bytes) : piece(bytes), tiles(bytes, 1) {}
  TUTTI_BODY std::size_t first_of(int rank) const { return static_cast<std::size_t>(rank) * piece; }
  TUTTI_BODY TileAt tile(int rank, Slice k) const {
    const TileAt at = tiles.tile(0, k);
    return {first_of(rank) + at.first, at.count};
  }
};

// Tile k of every other rank's piece, in the order of sending.
template <class Team, class Tiles>
TUTTI_BODY typename Team::Column load_pieces(Team& team, const KernelArgs& work,
                                             const Tiles& pieces, Slice k) {
  using T = std::uint8_t;
  if (pieces.piece % 16 == 0) return team.template load_column<T>(pieces, k);
  typename Team::Column column;  // each piece is aligned in its own way
  TUTTI_UNROLL
  for (int step = 0; step < Team::kMaxRanks - 1; ++step) {
    if (step >= team.others()) break;
    const std::byte* const from = work.input + pieces.first_of(rank_behind(work, step));
    column.at[step] = team.template load_from<T>(from, pieces.tile(0, k));
  }
  return column;
}

template <class, class Team>
TUTTI_BODY Outcome AllToAllOneShotPush::run(Team& team, const KernelArgs& work) {
  using T = std::uint8_t;
  using Column = typename Team::Column;
  const Pieces<Team::template tile_elements<T>()> pieces(piece_of(work));
  const Slice slices = pieces.tiles.slices, first = team.first_slice();
  const std::size_t own = pieces.first_of(work.rank);

  team.launch_wait();
  team.ask_launch();
  const Column ahead = load_pieces(team, work, pieces, first);
  if (team.open_packets() != Outcome::kDone) return Outcome::kFailed;
  team.for_each_slice(slices, [&](Slice k) {
    const Column column = k == first ? ahead : load_pieces(team, work, pieces, k);
    const TileAt tile = pieces.tile(0, k);
    team.template push_column<T>(
        {0, k}, [&](int) { return tile.count; }, column);
    const auto kept = team.template load_from<T>(work.input + own, tile);
    team.template store_to<T>(work.output + own, tile, kept);
    return Outcome::kDone;
  });
  team.announce();
  team.launch_trigger();

  const Outcome outcome = team.for_each_slice(slices, [&](Slice k) {
    const TileAt tile = pieces.tile(0, k);
    Column column;
    const auto count = [&](int) { return tile.count; };
    if (team.template poll<T>({0, k}, count, column) != Outcome::kDone) return Outcome::kFailed;
    TUTTI_UNROLL
    for (int r = 0; r < Team::kMaxRanks; ++r) {
      if (r >= team.ranks() || r == work.rank) continue;
      team.template store_to<T>(work.output + pieces.first_of(r), tile, column.at[r]);
    }
    return Outcome::kDone;
  });
  if (outcome != Outcome::kDone) return Outcome::kFailed;
  return team.close_packets();
}

}  // namespace tutti
