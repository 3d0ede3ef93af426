// reduce_scatter/push: every rank pushes each rank its piece into staging, which reduces it. Only
// stores cross the links.
//
//   barrier         every rank has begun, and is done with its staging of the operation before
//   for each pass k, and once more for the last one
//     push k        my input of each other rank's piece, the next rank's first, into my slot there
//     reduce k - 1  my piece, from my input and the others' slots, to own output
//     barrier k     every push k is there
//
// Passes take turns with two halves of staging, as those of all_reduce/two_shot_staged, which says
// why that is right: a slot is filled by push k behind barrier k - 1, to which its owner came after
// reduce k - 2, the last one to load from it. Behind the last reduction nobody has to meet: who
// pushes next comes through the first barrier of another operation.
//
// Cost: 3 hops (two flags, a store), and 2 for each further pass; (n-1)/n x bytes over each rank's
// links. No peer touches a buffer: any will do. In place is safe: of its own piece a rank loads an
// element in the thread that then overwrites it, and pushes nothing.
#pragma once

#include "algorithms/all_reduce/two_shot_staged.hpp"
#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/moving.hpp"
#include "algorithms/pieces.hpp"
#include "algorithms/takes.hpp"

namespace tutti {

struct ReduceScatterPush {
  using Kernel = PeerKernel;
  using Types = EveryReduction;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  static constexpr Algorithm kAlgorithm{
      .id = "reduce_scatter/push",
      .collective = Collective::kReduceScatter,
      .family = Family::kOneShot,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .order = Order::kRankOrder,
      // Of one pass.
      .cost = {.steps = 5.2, .wire = pieces_wire, .local = times<1>},
      .text = "every rank pushes each rank its block; that rank reduces; in passes",
      .peers_read_input = false,
      .pushes_through_staging = true,
      .only_where_measured = true,
      .takes = takes_everything,
      .geometry = two_shot_geometry,
      .host = host,
      .cuda = cuda};
  // Pushing, where every rank but the own one gets a part, and reducing.
  static constexpr KernelPromises kPromises{
      .loads = kMaxCudaRanks, .stores = 1, .barriers = 2, .stack_bytes = 96};
  static constexpr Traffic kTraffic{.hops = "3, and 2 for each further pass", .wire = "(n-1)/n B"};

  template <class Reduction, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work);
};

// One pass over a part of every piece, in elements. The same on all ranks.
struct PiecePass {
  std::size_t piece, done, share;
  int whole;                 // all of them
  std::size_t slot, places;  // of staging, as in a StagedPass

  TUTTI_BODY std::size_t first_of(int rank) const {
    return piece * static_cast<std::size_t>(rank) + done;
  }
  TUTTI_BODY Range share_of(int rank) const { return {first_of(rank), share}; }
  TUTTI_BODY std::size_t place(int index) const {
    return places + slot * static_cast<std::size_t>(index);
  }
};

// A slot per rank for what it sends, in each half of staging.
struct PiecePasses {
  std::size_t piece, slot, number;
  int ranks;

  TUTTI_BODY PiecePasses(const KernelArgs& work, std::size_t element_bytes)
      : piece(piece_of(work)),
        slot(slot_of(work, 2 * work.ranks, element_bytes)),
        number(slot == 0 ? 1 : (piece + slot - 1) / slot),
        ranks(work.ranks) {}

  TUTTI_BODY PiecePass pass(std::size_t k) const {
    const Range part = cut({k * slot, slot}, piece);
    const std::size_t half = slot * static_cast<std::size_t>(ranks);
    return {piece, part.first, part.count, ranks, slot, k % 2 * half};
  }
};

// Where this rank finds everybody's part of a pass: its own in its input.
template <class T, class Team, class Pass>
TUTTI_BODY Pointers<Team::kMaxRanks> pushed_parts(const KernelArgs& work, const Pass& pass) {
  std::byte* const own = const_cast<std::byte*>(work.input) + pass.first_of(work.rank) * sizeof(T);
  Pointers<Team::kMaxRanks> from;
  TUTTI_UNROLL
  for (int r = 0; r < Team::kMaxRanks; ++r) {
    if (r >= work.ranks) continue;
    from.at[r] = r == work.rank ? own : work.staging.at[work.rank] + pass.place(r) * sizeof(T);
  }
  return from;
}

template <class Reduction, class Team>
TUTTI_BODY void reduce_pushed(Team& team, const KernelArgs& work, const PiecePass& pass,
                              const Scalars<Reduction, Team::kMaxRanks>& scalars) {
  using T = typename Reduction::Element;
  const Pointers<Team::kMaxRanks> from = pushed_parts<T, Team>(work, pass);
  team.template for_each_tile<T>(Range{0, pass.share}, [&](auto access, TileAt tile) {
    const auto value = reduce_tile<Reduction, true>(team, from, access, tile, scalars);
    team.template store<T>(work.output, access, TileAt{pass.done + tile.first, tile.count}, value);
  });
}

template <class Reduction, class Team>
TUTTI_BODY Outcome ReduceScatterPush::run(Team& team, const KernelArgs& work) {
  using T = typename Reduction::Element;
  const PiecePasses passes(work, sizeof(T));
  const StagedBlock<Reduction, Team> block(team, work);
  publish_scalar<Reduction>(team, work);
  team.arrive(first_publish(work));
  (void)team.buffers(passes.piece * sizeof(T));  // which accesses pieces allow
  if (team.wait() != Outcome::kDone) return Outcome::kFailed;
  const Scalars<Reduction, Team::kMaxRanks> scalars(team, work);

  TUTTI_NO_UNROLL
  for (std::size_t k = 0; k <= passes.number; ++k) {
    if (k < passes.number) block.push(passes.pass(k));
    if (k > 0) reduce_pushed<Reduction>(team, work, passes.pass(k - 1), scalars);
    if (k == passes.number) break;
    if (team.barrier(Publish::kStores) != Outcome::kDone) return Outcome::kFailed;
  }
  return team.finish();
}

}  // namespace tutti
