// reduce_scatter/push_per_peer: as push, by blocks that are bound to one rank each
// (algorithms/push_per_peer.hpp): those bound to this one reduce its piece, while the others push.
// They are few, so bulk copies fetch for them what came.
//
// Cost: 3 hops (two flags, a store), and 2 for each further pass; (n-1)/n x bytes over each rank's
// links. No peer touches a buffer: any will do. In place is safe: a tile of its own piece has been
// fetched before it is overwritten, and nothing of that is pushed.
#pragma once

#include "algorithms/instantiate.hpp"
#include "algorithms/push_per_peer.hpp"
#include "algorithms/reduce_scatter/push.hpp"

namespace tutti {

template <class Reduction, class Team>
TUTTI_BODY Outcome reduce_scatter_push_per_peer(Team& team, const KernelArgs& work) {
  using T = typename Reduction::Element;
  const BoundPasses passes(work, team.block(), sizeof(T), true);
  if constexpr (Reduction::Op::kScaled) team.publish_scalar(work.scalar);
  team.arrive(first_publish(work));
  (void)team.buffers(passes.piece * sizeof(T));  // which accesses pieces allow
  if (team.wait() != Outcome::kDone) return Outcome::kFailed;
  const Scalars<Reduction, Team::kMaxRanks> scalars(team, work);

  const auto push = [&](int rank, const BoundPass& pass) {
    if (rank == work.rank) return;
    const std::byte* const from = work.input + pass.first_of(rank) * sizeof(T);
    std::byte* const room = work.staging.at[rank] + pass.place(work.rank) * sizeof(T);
    team.template copy_alone<T>({0, pass.part.count}, from, room);
  };
  const auto take = [&](const BoundPass& pass) {
    const auto reduce = [&](auto access, TileAt tile, const auto& part_of) {
      const auto value = reduce_one_by_one<Reduction>(team, scalars, part_of);
      const TileAt at{pass.part.first + tile.first, tile.count};
      team.template store<T>(work.output, access, at, value);
    };
    const auto parts = pushed_parts<T, Team>(work, pass);
    return team.template bulk_fetch<T>(parts, Range{0, pass.part.count}, reduce);
  };
  return push_bound(team, work, passes, push, take);
}

template <class Team>
BodyOf<Team> host_reduce_scatter_push_per_peer(DataType dtype, OpKind op) {
  return with_reduction<Team>(dtype, op, [](auto reduction) -> BodyOf<Team> {
    return reduce_scatter_push_per_peer<typename decltype(reduction)::Type, Team>;
  });
}

}  // namespace tutti
