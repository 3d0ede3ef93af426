// reduce_scatter/push_per_peer: as push, by blocks that are bound to one rank each
// (algorithms/push_per_peer.hpp): those bound to this one reduce its piece, while the others push.
//
// Cost: 3 hops (two flags, a store), and 2 for each further pass; (n-1)/n x bytes over each rank's
// links. No peer touches a buffer: any will do. In place is safe: of its own piece a rank loads an
// element in the thread that then overwrites it, and pushes nothing.
#pragma once

#include "algorithms/push_per_peer.hpp"
#include "algorithms/reduce_scatter/push.hpp"

namespace tutti {

template <class Reduction, class Team>
TUTTI_BODY Outcome reduce_scatter_push_per_peer(Team& team, const Work& work) {
  using T = typename Reduction::Element;
  const PiecePasses passes(work, sizeof(T));
  if constexpr (Reduction::Op::kScaled) team.publish_scalar(work.scalar);
  team.arrive(first_publish(work));
  (void)team.buffers(passes.piece * sizeof(T));  // which accesses pieces allow
  if (team.wait() != Outcome::kDone) return Outcome::kFailed;
  const Scalars<Reduction, Team::kMaxRanks> scalars(team, work);

  const auto push = [&](int rank, const PiecePass& pass, BlockGroup group) {
    if (rank == work.rank) return;
    const std::byte* const from = work.input + pass.first_of(rank) * sizeof(T);
    std::byte* const slot = work.staging.at[rank] + pass.place(work.rank) * sizeof(T);
    team.template copy_between<T>(group, {0, pass.share}, from, slot);
  };
  const auto take = [&](const PiecePass& pass, BlockGroup group) {
    reduce_pushed<Reduction>(team, work, group, pass, scalars);
  };
  return push_bound(team, work, passes, push, take);
}

}  // namespace tutti
