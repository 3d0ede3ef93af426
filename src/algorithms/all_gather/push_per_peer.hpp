// all_gather/push_per_peer: as push, by blocks that are bound to one rank each
// (algorithms/push_per_peer.hpp).
//
// Cost: 3 hops (two flags, a store), and 2 for each further pass; (n-1)/n x bytes over each rank's
// links. Nobody touches another rank's input. In place is safe: nobody writes a rank's place in its
// output.
#pragma once

#include "algorithms/bodies.hpp"
#include "algorithms/push_per_peer.hpp"

namespace tutti {

template <class Team>
TUTTI_BODY Outcome all_gather_push_per_peer(Team& team, const KernelArgs& work) {
  return push_pieces_bound(team, work, [&](int) { return work.input; });
}

template <class Team>
BodyOf<Team> host_all_gather_push_per_peer(DataType, OpKind) {
  return all_gather_push_per_peer<Team>;
}

}  // namespace tutti
