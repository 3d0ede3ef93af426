// all_gather/pull_tma: each rank fetches everybody's input, by bulk copies into shared memory: few
// threads issue them, so that few blocks keep the links busy, and a matmul beside has the other
// multiprocessors.
//
//   phase 1  stage in: bulk copies, bulk_wait (only for inputs that peers cannot address)
//   phase 2  barrier: every input is there
//   phase 3  fetch everybody's input, store it to its place in own output
//   phase 4  barrier: nobody reads my input any more
//
// A block has the same run of every piece: it stages what its like at other ranks fetch. In place
// is safe: nobody writes a rank's place in its output.
//
// Cost: 4 hops (two flags, a load's way there and back), (n-1)/n x bytes over each rank's links.
#pragma once

#include "algorithms/descriptor.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/moving.hpp"
#include "algorithms/pieces.hpp"

namespace tutti {

struct AllGatherPullTma {
  using Kernel = BulkFetchKernel;
  using Types = MovedBytes;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  static constexpr Algorithm kAlgorithm{
      .id = "all_gather/pull_tma",
      .collective = Collective::kAllGather,
      .family = Family::kOneShot,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .cost = {.steps = 5.5, .host_steps = 4, .wire = pieces_wire, .local = own_piece_local},
      .text = "each rank fetches every rank's input by bulk copies (TMA), which need few SMs",
      .only_where_measured = true,
      .least_compute = 90,
      .min_threads = 64,
      .shared_bytes = kBulkBytes,
      .takes = moves,
      .geometry = bulk_geometry,
      .host = host,
      .cuda = cuda};
  // Where a share is whole: what came and what is added; sent on, sent back, and kept.
  // What ranks have comes into shared memory, and is used from there.
  static constexpr KernelPromises kPromises{
      .stores = 1, .barriers = 2, .block_fences = true, .bulk_loads = true, .bulk_stores = true};
  static constexpr Traffic kTraffic{.hops = "4", .wire = "(n-1)/n B"};

  template <class, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work);
};

template <class, class Team>
TUTTI_BODY Outcome AllGatherPullTma::run(Team& team, const KernelArgs& work) {
  using T = std::uint8_t;
  const std::size_t piece = piece_of(work);
  const std::size_t slot = work.stage_input ? slot_of(work, 1, 1) : piece;
  const auto place_of = [&](int rank) {
    return work.output + static_cast<std::size_t>(rank) * piece;
  };
  const bool in_place = place_of(work.rank) == work.input;

  for (std::size_t done = 0; done < piece || done == 0; done += slot) {
    const Range part = cut(shard(Range{done, slot}, team.block(), work.blocks, 16), piece);
    // Where that lies in inputs, or in slots, which start at each pass anew.
    const std::size_t first = work.stage_input ? part.first - done : part.first;
    if (work.stage_input) {
      team.template bulk_copy<T>(work.staging.at[work.rank] + first, work.input + part.first,
                                 part.count);
      if (team.bulk_wait() != Outcome::kDone) return Outcome::kFailed;
    }

    team.arrive(first_publish(work));
    const auto buffers = team.buffers(piece);
    if (team.wait() != Outcome::kDone) return Outcome::kFailed;

    const auto store = [&](auto access, TileAt tile, const auto& part_of) {
      const TileAt at{part.first + tile.first, tile.count};
      TUTTI_NO_UNROLL
      for (int r = 0; r < work.ranks; ++r) {
        if (in_place && r == work.rank) continue;
        team.template store<T>(place_of(r), access, at, part_of(r));
      }
    };
    const Range fetched{first, part.count};
    if (team.template bulk_fetch<T>(buffers.inputs, fetched, store) != Outcome::kDone) {
      return Outcome::kFailed;
    }

    if (team.barrier(Publish::kLoads) != Outcome::kDone) return Outcome::kFailed;
    if (slot == 0) break;
  }
  return team.finish();
}

}  // namespace tutti
