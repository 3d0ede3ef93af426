// all_to_all/push: every rank stores its piece for each rank into that one's output.
//
//   phase 1  barrier: every output may be written; staging is free
//   phase 2  load tile k of every piece of my input, store each to its rank at my place, next rank
//            first
//   phase 3  barrier: every piece is written
//   phase 4  stage out (only for outputs that peers cannot address)
//
// Cost: 3 hops (two flags, a store), (n-1)/n x bytes over each rank's links. Nobody touches another
// rank's input. A tile is one of every piece: each thread always stores to all ranks, so that none
// of the links waits for its turn, and no rank is written by everybody at once.
#pragma once

#include "algorithms/descriptor.hpp"
#include "algorithms/moving.hpp"
#include "algorithms/pieces.hpp"

namespace tutti {

struct AllToAllPush {
  using Kernel = PeerKernel;
  using Types = MovedBytes;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  static constexpr Algorithm kAlgorithm{
      .id = "all_to_all/push",
      .collective = Collective::kAllToAll,
      .family = Family::kOneShot,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .cost = moving_cost(1.13),
      .text = "every rank stores each rank's block into that rank's output",
      .peers_read_input = false,
      .peers_write_output = true,
      .takes = moves,
      .geometry = push_pieces_geometry,
      .host = host,
      .cuda = cuda};
  // Each rank gets its own piece: a tile of every one is under way at once.
  static constexpr KernelPromises kPromises{
      .loads = kMaxCudaRanks, .stores = kMaxCudaRanks, .barriers = 2};
  static constexpr Traffic kTraffic{.hops = "3", .wire = "(n-1)/n B"};

  template <class, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work);
};

// To every rank, the next one first, at `at` what load(step) gives for it.
template <class Team, class Access, class Load>
TUTTI_BODY void scatter_tile(Team& team, const Pointers<Team::kMaxRanks>& to, Access access,
                             TileAt at, Load&& load) {
  using T = std::uint8_t;
  const int ranks = team.ranks();
  if constexpr (Access::kLoadsAhead) {
    using Part = Tile<T, Team::template tile_elements<T>()>;
    using Words = Tile<std::uint32_t, sizeof(Part) / 4>;  // which stay whole registers
    Words part[Team::kMaxRanks];
    TUTTI_UNROLL
    for (int step = 0; step < Team::kMaxRanks; ++step) {
      part[step] = {};
      if (step < ranks) part[step] = __builtin_bit_cast(Words, load(step));
    }
    team.end_of_loads();
    TUTTI_UNROLL
    for (int step = 0; step < Team::kMaxRanks; ++step) {
      if (step >= ranks) continue;
      team.template store<T>(to.at[step], access, at, __builtin_bit_cast(Part, part[step]));
    }
  } else {
    TUTTI_NO_UNROLL
    for (int step = 0; step < ranks; ++step) {
      team.template store<T>(to.of(step), access, at, load(step));
    }
  }
}

template <class, class Team>
TUTTI_BODY Outcome AllToAllPush::run(Team& team, const KernelArgs& work) {
  using T = std::uint8_t;
  const std::size_t piece = piece_of(work), slot = slot_bytes(work);

  for (std::size_t done = 0; done < piece || done == 0; done += slot) {
    const Range part = cut(Range{done, slot}, piece);
    // From a place in a piece to mine in outputs, or in slots, which start at each pass anew.
    const std::size_t mine = static_cast<std::size_t>(work.rank);
    const std::size_t shift = work.stage_output ? mine * slot - done : mine * piece;

    team.arrive(done == 0 ? Publish::kEarlierKernels : Publish::kLoads);
    const auto buffers = team.buffers(piece);
    if (team.wait() != Outcome::kDone) return Outcome::kFailed;

    const std::byte* const stored = buffers.outputs.at[0] + part.first + shift;
    team.template for_each_stored_tile<T>(part, stored, [&](auto access, TileAt tile) {
      scatter_tile(team, buffers.outputs, access, {tile.first + shift, tile.count}, [&](int step) {
        const auto whose = static_cast<std::size_t>(rank_behind(work, step));
        return team.template load<T>(work.input + whose * piece, access, tile);
      });
    });

    if (team.barrier(Publish::kStores) != Outcome::kDone) return Outcome::kFailed;

    for (int r = 0; work.stage_output && r < work.ranks; ++r) {
      const std::size_t from = static_cast<std::size_t>(r) * slot;
      const std::size_t to = static_cast<std::size_t>(r) * piece + done;
      team.template copy_out<T>(Range{to, part.count}, to - from);
    }
    if (slot == 0) break;
  }
  return team.finish();
}

}  // namespace tutti
