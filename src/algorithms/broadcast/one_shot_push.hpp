// broadcast/one_shot_push: the root sends its input to everybody.
//
//   root     push each tile into the slot at every other rank, store it to own output
//   others   poll each tile from the root, store it to own output
//
// Cost: 1 hop (a packet), 2 (n-1) x bytes over the root's links: every pattern has to arrive as it
// is, so bits travel beside marks. Nobody touches another rank's buffers, so any will do, and in
// place is safe.
#pragma once

#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/moving.hpp"
#include "device/packets.hpp"

namespace tutti {

struct BroadcastOneShotPush {
  using Kernel = PacketKernel;
  using Types = MovedBytes;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  static constexpr Algorithm kAlgorithm{
      .id = "broadcast/one_shot_push",
      .collective = Collective::kBroadcast,
      .family = Family::kOneShot,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .cost = {.steps = 2.4, .host_steps = 5.5, .wire = one_shot_wire, .local = times<4>},
      .text = "the root sends its input to all ranks, in words that are their own flags",
      .peers_read_input = false,
      .starts_early = true,
      .packets = whole_packets,
      .takes = moves,
      .geometry = whole_packets_geometry,
      .host = host,
      .cuda = cuda};
  static constexpr KernelPromises kPromises = kPollsOne;
  static constexpr Traffic kTraffic{.hops = "1", .wire = "2 (n-1) B, from the root"};

  template <class, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work);
};

template <class, class Team>
TUTTI_BODY Outcome BroadcastOneShotPush::run(Team& team, const KernelArgs& work) {
  using T = std::uint8_t;
  const Shares<Team::template tile_elements<T>()> tiles(work.count, 1);
  const Slice first = team.first_slice();
  const bool sends = work.rank == work.root;

  team.launch_wait();
  team.ask_launch();
  typename Team::Words ahead{};
  if (sends) ahead = team.template load_tile<T>(tiles.tile(0, first));
  if (team.open_packets() != Outcome::kDone) return Outcome::kFailed;
  if (sends) {
    team.for_each_slice(tiles.slices, [&](Slice k) {
      const TileAt tile = tiles.tile(0, k);
      const auto words = k == first ? ahead : team.template load_tile<T>(tile);
      team.template push_all<T>({0, k}, tile.count, words);
      team.template store_tile<T>(tile, words);
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
