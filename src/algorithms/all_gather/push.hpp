// all_gather/push: every rank stores its input into everybody's output.
//
//   phase 1  barrier: every output may be written; staging is free
//   phase 2  load each tile of my input, store it to all ranks at my place, next rank first
//   phase 3  barrier: every piece is written
//   phase 4  stage out (only for outputs that peers cannot address)
//
// Cost: 3 hops (two flags, a store), (n-1)/n x bytes over each rank's links. Nobody touches another
// rank's input. In place is safe: my place in my output is written by the threads that have read
// it, with what they read.
#pragma once

#include "algorithms/descriptor.hpp"
#include "algorithms/moving.hpp"
#include "algorithms/pieces.hpp"

namespace tutti {

struct AllGatherPush {
  using Kernel = PeerKernel;
  using Types = MovedBytes;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  static constexpr Algorithm kAlgorithm{
      .id = "all_gather/push",
      .collective = Collective::kAllGather,
      .family = Family::kOneShot,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      // As measured on 2 H200s; so are all other rows.
      .cost = moving_cost(1.1),
      .text = "every rank stores its input into every rank's output",
      .peers_read_input = false,
      .peers_write_output = true,
      .takes = moves,
      .geometry = push_pieces_geometry,
      .host = host,
      .cuda = cuda};
  // What a rank has goes to all of them. They are compiled for bytes alone.
  static constexpr KernelPromises kPromises{.loads = 1, .stores = kMaxCudaRanks, .barriers = 2};
  static constexpr Traffic kTraffic{.hops = "3", .wire = "(n-1)/n B"};

  template <class, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work);
};

// store_to_all(outputs, access, tile, value) puts a tile into everybody's output.
template <class Team, class StoreToAll>
TUTTI_BODY Outcome give_my_piece(Team& team, const KernelArgs& work, StoreToAll&& store_to_all) {
  using T = std::uint8_t;
  const std::size_t piece = piece_of(work), slot = slot_bytes(work);

  for (std::size_t done = 0; done < piece || done == 0; done += slot) {
    const Range part = cut(Range{done, slot}, piece);
    // From a place in the input to the same in outputs, or in slots, which start at each pass anew.
    const std::size_t mine = static_cast<std::size_t>(work.rank);
    const std::size_t shift = work.stage_output ? mine * slot - done : mine * piece;

    team.arrive(done == 0 ? Publish::kEarlierKernels : Publish::kLoads);
    const auto buffers = team.buffers(piece);
    if (team.wait() != Outcome::kDone) return Outcome::kFailed;

    const std::byte* const stored = buffers.outputs.at[0] + part.first + shift;
    team.template for_each_stored_tile<T>(part, stored, [&](auto access, TileAt tile) {
      const auto value = team.template load<T>(work.input, access, tile);
      store_to_all(buffers.outputs, access, TileAt{tile.first + shift, tile.count}, value);
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

template <class, class Team>
TUTTI_BODY Outcome AllGatherPush::run(Team& team, const KernelArgs& work) {
  const auto store_to_all = [&](const auto& outputs, auto access, TileAt tile, const auto& value) {
    team.template store_all<std::uint8_t>(outputs, access, tile, value);
  };
  return give_my_piece(team, work, store_to_all);
}

}  // namespace tutti
