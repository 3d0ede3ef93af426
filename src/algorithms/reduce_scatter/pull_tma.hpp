// reduce_scatter/pull_tma: as pull, phase for phase, but bulk copies fetch what ranks have into
// shared memory: few threads issue them, so that few blocks keep the links busy, and a matmul
// beside has the other multiprocessors.
//
//   phase 1  stage in: bulk copies, bulk_wait (only for inputs that peers cannot address)
//   phase 2  barrier: every input is there
//   phase 3  fetch my piece from all ranks, reduce, store to own output
//   phase 4  barrier: nobody reads my input any more
//
// A block has the same run of every piece, in staging as well: it stages what its like at other
// ranks fetch. In place is safe: nobody else reads my piece of my input, of which a tile has been
// fetched before it is overwritten.
//
// Cost: as pull.
#pragma once

#include "algorithms/descriptor.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/moving.hpp"
#include "algorithms/pieces.hpp"
#include "algorithms/reduction.hpp"
#include "algorithms/takes.hpp"

namespace tutti {

struct ReduceScatterPullTma {
  using Kernel = BulkFetchKernel;
  using Types = EveryReduction;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  static constexpr Algorithm kAlgorithm{
      .id = "reduce_scatter/pull_tma",
      .collective = Collective::kReduceScatter,
      .family = Family::kOneShot,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .order = Order::kRankOrder,
      .cost = {.steps = 5.5, .wire = pieces_wire, .local = own_piece_local, .narrow = 1.02},
      .text = "as pull, by bulk copies (TMA), which need few SMs",
      .only_where_measured = true,
      .stands_in_for = "reduce_scatter/pull",
      .stands_in_up_to = 32,
      .least_compute = 90,
      .min_threads = 64,
      .shared_bytes = kBulkBytes,
      .takes = takes_everything,
      .geometry = bulk_geometry,
      .host = host,
      .cuda = cuda};
  static constexpr KernelPromises kPromises{.stores = 1,
                                            .barriers = 2,
                                            .stack_bytes = 128,
                                            .block_fences = true,
                                            .bulk_loads = true,
                                            .bulk_stores = true};
  static constexpr Traffic kTraffic{.hops = "4", .wire = "(n-1)/n B"};

  template <class Reduction, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work);
};

// This block's part of every rank's piece, into slots.
template <class T, class Team>
TUTTI_BODY Outcome stage_in_bulk(Team& team, const KernelArgs& work, Range part, std::size_t done,
                                 std::size_t slot) {
  (void)team.buffers(piece_of(work) * sizeof(T));  // which accesses pieces and slots allow
  TUTTI_NO_UNROLL
  for (int r = 0; r < work.ranks; ++r) {
    const auto index = static_cast<std::size_t>(r);
    const std::size_t from = index * piece_of(work) + part.first;
    const std::size_t to = index * slot + part.first - done;
    team.template bulk_copy<T>(work.staging.at[work.rank] + to * sizeof(T),
                               work.input + from * sizeof(T), part.count);
  }
  return team.bulk_wait();
}

template <class Reduction, class Team>
TUTTI_BODY Outcome ReduceScatterPullTma::run(Team& team, const KernelArgs& work) {
  using T = typename Reduction::Element;
  const std::size_t piece = piece_of(work), mine = static_cast<std::size_t>(work.rank);
  const std::size_t slot = work.stage_input ? slot_of(work, work.ranks, sizeof(T)) : piece;
  publish_scalar<Reduction>(team, work);

  for (std::size_t done = 0; done < piece || done == 0; done += slot) {
    const Range slots{done, slot};
    const Range part = cut(shard(slots, team.block(), work.blocks, 16 / sizeof(T)), piece);
    if (work.stage_input && stage_in_bulk<T>(team, work, part, done, slot) != Outcome::kDone) {
      return Outcome::kFailed;
    }

    team.arrive(first_publish(work));
    const auto buffers = team.buffers(piece * sizeof(T));
    if (team.wait() != Outcome::kDone) return Outcome::kFailed;

    // From a place in the output to the same in inputs, or in slots, which start at each pass anew.
    const std::size_t shift = work.stage_input ? mine * slot - done : mine * piece;
    const Scalars<Reduction, Team::kMaxRanks> scalars(team, work);
    const auto reduce = [&](auto access, TileAt tile, const auto& part_of) {
      const auto value = reduce_one_by_one<Reduction>(team, scalars, part_of);
      team.template store<T>(work.output, access, TileAt{part.first + tile.first, tile.count},
                             value);
    };
    const Range fetched{part.first + shift, part.count};
    if (team.template bulk_fetch_to<T>(work.output + part.first * sizeof(T), buffers.inputs,
                                       fetched, reduce) != Outcome::kDone) {
      return Outcome::kFailed;
    }

    if (team.barrier(Publish::kLoads) != Outcome::kDone) return Outcome::kFailed;
    if (slot == 0) break;
  }
  return team.finish();
}

}  // namespace tutti
