// reduce_scatter/pull: each rank reads its piece of everybody's input, and reduces it.
//
//   phase 1  stage in: a slot of every rank's piece (only for inputs that peers cannot address)
//   phase 2  barrier: every input is there
//   phase 3  load each tile of my piece from all ranks, reduce, store to own output
//   phase 4  barrier: nobody reads my input any more
//
// Cost: 4 hops (two flags, a load's way there and back), (n-1)/n x bytes over each rank's links. In
// place is safe: nobody else reads my piece of my input, of which an element is loaded by the
// thread that then overwrites it.
#pragma once

#include "algorithms/descriptor.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/moving.hpp"
#include "algorithms/pieces.hpp"
#include "algorithms/reduction.hpp"
#include "algorithms/takes.hpp"

namespace tutti {

struct ReduceScatterPull {
  using Kernel = PeerKernel;
  using Types = EveryReduction;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  static constexpr Algorithm kAlgorithm{
      .id = "reduce_scatter/pull",
      .collective = Collective::kReduceScatter,
      .family = Family::kOneShot,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .order = Order::kRankOrder,
      // Without the store to everyone.
      .cost = {.steps = 4, .wire = pieces_wire, .local = own_piece_local, .narrow = 1.6},
      .text = "each rank reads its block of every rank's input and reduces it",
      .takes = takes_everything,
      .geometry = two_shot_geometry,
      .host = host,
      .cuda = cuda};
  static constexpr KernelPromises kPromises{.loads = kMaxCudaRanks, .stores = 1, .barriers = 2};
  static constexpr Traffic kTraffic{.hops = "4", .wire = "(n-1)/n B"};

  template <class Reduction, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work);
};

// The tiles of each slot that block b stages are the tiles that block b of its rank reads.
template <class T, class Team>
TUTTI_BODY void stage_slots(Team& team, const KernelArgs& work, Range part, std::size_t slot) {
  (void)team.buffers(piece_of(work) * sizeof(T));  // which accesses pieces and slots allow
  TUTTI_NO_UNROLL
  for (int r = 0; r < work.ranks; ++r) {
    const auto index = static_cast<std::size_t>(r);
    const std::byte* const from = work.input + index * piece_of(work) * sizeof(T);
    std::byte* const to = work.staging.at[work.rank] + index * slot * sizeof(T);
    team.template for_each_stored_tile<T>(part, to, [&](auto access, TileAt tile) {
      const auto value = team.template load<T>(from, access, tile);
      team.template store<T>(to, access, TileAt{tile.first - part.first, tile.count}, value);
    });
  }
}

// reducer(buffers) gives f(access, tile), which gives that tile of everybody's input, reduced.
template <class Reduction, class Team, class Reducer>
TUTTI_BODY Outcome reduce_my_piece(Team& team, const KernelArgs& work, Reducer&& reducer) {
  using T = typename Reduction::Element;
  const std::size_t piece = piece_of(work), mine = static_cast<std::size_t>(work.rank);
  const std::size_t slot = work.stage_input ? slot_of(work, work.ranks, sizeof(T)) : piece;
  publish_scalar<Reduction>(team, work);

  for (std::size_t done = 0; done < piece || done == 0; done += slot) {
    const Range part = cut(Range{done, slot}, piece);
    // From a place in the output to the same in inputs, or in slots, which start at each pass anew.
    const std::size_t shift = work.stage_input ? mine * slot - done : mine * piece;
    if (work.stage_input) stage_slots<T>(team, work, part, slot);

    team.arrive(first_publish(work));
    const auto buffers = team.buffers(piece * sizeof(T));
    if (team.wait() != Outcome::kDone) return Outcome::kFailed;

    const auto reduced = reducer(buffers);
    const std::byte* const to = work.output + part.first * sizeof(T);
    team.template for_each_stored_tile<T>(part, to, [&](auto access, TileAt tile) {
      const auto value = reduced(access, TileAt{tile.first + shift, tile.count});
      team.template store<T>(work.output, access, tile, value);
    });

    if (team.barrier(Publish::kLoads) != Outcome::kDone) return Outcome::kFailed;
    if (slot == 0) break;
  }
  return team.finish();
}

template <class Reduction, class Team>
TUTTI_BODY Outcome ReduceScatterPull::run(Team& team, const KernelArgs& work) {
  return reduce_my_piece<Reduction>(team, work, [&](const auto& buffers) {
    const Scalars<Reduction, Team::kMaxRanks> scalars(team, work);
    return [&team, &buffers, scalars](auto access, TileAt tile) {
      return reduce_tile<Reduction>(team, buffers.inputs, access, tile, scalars);
    };
  });
}

}  // namespace tutti
