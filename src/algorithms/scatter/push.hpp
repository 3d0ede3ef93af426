// scatter/push: the root stores each rank's piece into that one's output.
//
//   phase 1  barrier: every output may be written; staging is free
//   phase 2  root: load tile k of every piece of my input, store each to its rank, next rank first
//   phase 3  barrier: every piece is written
//   phase 4  stage out (only for outputs that peers cannot address)
//
// Cost: 3 hops (two flags, a store), (n-1)/n x bytes over the root's links. Nobody touches the
// root's input, so any will do.
#pragma once

#include "algorithms/all_to_all/push.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/moving.hpp"

namespace tutti {

struct ScatterPush {
  using Kernel = PeerKernel;
  using Types = MovedBytes;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  static constexpr Algorithm kAlgorithm{
      .id = "scatter/push",
      .collective = Collective::kScatter,
      .family = Family::kOneShot,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .cost = moving_cost(1.05),
      .text = "the root stores each rank's block into that rank's output",
      .peers_read_input = false,
      .peers_write_output = true,
      .takes = moves,
      .geometry = push_pieces_geometry,
      .host = host,
      .cuda = cuda};
  // A root has something for each rank, or gets something of each.
  static constexpr KernelPromises kPromises{
      .loads = kMaxCudaRanks, .stores = kMaxCudaRanks, .barriers = 2};
  static constexpr Traffic kTraffic{.hops = "3", .wire = "(n-1)/n B, from the root"};

  template <class, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work);
};

template <class, class Team>
TUTTI_BODY Outcome ScatterPush::run(Team& team, const KernelArgs& work) {
  using T = std::uint8_t;
  const std::size_t piece = piece_of(work);
  const std::size_t slot = work.stage_output ? slot_of(work, 1, 1) : piece;

  for (std::size_t done = 0; done < piece || done == 0; done += slot) {
    const Range part = cut(Range{done, slot}, piece);
    const std::size_t origin = work.stage_output ? done : 0;  // of outputs, or of staging

    team.arrive(done == 0 ? Publish::kEarlierKernels : Publish::kLoads);
    const auto buffers = team.buffers(piece);
    if (team.wait() != Outcome::kDone) return Outcome::kFailed;

    if (work.rank == work.root) {
      const std::byte* const to = buffers.outputs.at[0] + (part.first - origin);
      team.template for_each_stored_tile<T>(part, to, [&](auto access, TileAt tile) {
        const TileAt at{tile.first - origin, tile.count};
        scatter_tile(team, buffers.outputs, access, at, [&](int step) {
          const auto whose = static_cast<std::size_t>(rank_behind(work, step));
          return team.template load<T>(work.input + whose * piece, access, tile);
        });
      });
    }

    if (team.barrier(Publish::kStores) != Outcome::kDone) return Outcome::kFailed;
    if (work.stage_output) team.template copy_out<T>(part, origin);
    if (slot == 0) break;
  }
  return team.finish();
}

}  // namespace tutti
