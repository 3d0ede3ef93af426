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
#include "algorithms/pieces.hpp"

namespace tutti {

template <class Reduction, class Team>
TUTTI_BODY void reduce_pushed(Team& team, const Work& work, BlockGroup group, const PiecePass& pass,
                              const Scalars<Reduction, Team::kMaxRanks>& scalars) {
  using T = typename Reduction::Element;
  std::byte* const own = const_cast<std::byte*>(work.input) + pass.first_of(work.rank) * sizeof(T);
  Pointers<Team::kMaxRanks> from;
  TUTTI_UNROLL
  for (int r = 0; r < Team::kMaxRanks; ++r) {
    if (r >= work.ranks) continue;
    from.at[r] = r == work.rank ? own : work.staging.at[work.rank] + pass.place(r) * sizeof(T);
  }
  team.template for_each_tile<T>(group, Range{0, pass.share}, [&](auto access, TileAt tile) {
    const auto value = reduce_tile<Reduction, true>(team, from, access, tile, scalars);
    team.template store<T>(work.output, access, TileAt{pass.done + tile.first, tile.count}, value);
  });
}

template <class Reduction, class Team>
TUTTI_BODY Outcome reduce_scatter_push(Team& team, const Work& work) {
  using T = typename Reduction::Element;
  const PiecePasses passes(work, sizeof(T));
  const StagedBlock<Reduction, Team> block(team, work);
  const BlockGroup all{team.block(), work.blocks};
  if constexpr (Reduction::Op::kScaled) team.publish_scalar(work.scalar);
  team.arrive(first_publish(work));
  (void)team.buffers(passes.piece * sizeof(T));  // which accesses pieces allow
  if (team.wait() != Outcome::kDone) return Outcome::kFailed;
  const Scalars<Reduction, Team::kMaxRanks> scalars(team, work);

  TUTTI_NO_UNROLL
  for (std::size_t k = 0; k <= passes.number; ++k) {
    if (k < passes.number) block.push(passes.pass(k));
    if (k > 0) reduce_pushed<Reduction>(team, work, all, passes.pass(k - 1), scalars);
    if (k == passes.number) break;
    if (team.barrier(Publish::kStores) != Outcome::kDone) return Outcome::kFailed;
  }
  return team.finish();
}

}  // namespace tutti
