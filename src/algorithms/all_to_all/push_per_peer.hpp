// all_to_all/push_per_peer: as push, by blocks that are bound to one rank each
// (algorithms/push_per_peer.hpp).
//
// Cost: 3 hops (two flags, a store), and 2 for each further pass; (n-1)/n x bytes over each rank's
// links. Nobody touches another rank's input.
#pragma once

#include "algorithms/bodies.hpp"
#include "algorithms/push_per_peer.hpp"

namespace tutti {

template <class Team>
TUTTI_BODY Outcome all_to_all_push_per_peer(Team& team, const KernelArgs& work) {
  return push_pieces_bound(team, work, [&](int rank) {
    return work.input + static_cast<std::size_t>(rank) * piece_of(work);
  });
}

template <class Team>
BodyOf<Team> host_all_to_all_push_per_peer(DataType, OpKind) {
  return all_to_all_push_per_peer<Team>;
}

}  // namespace tutti
