// reduce/multicast: the root has the switch reduce all of it.
//
//   phase 1  stage in (only for inputs that peers cannot address)
//   phase 2  barrier: every input is there
//   phase 3  the root loads each tile reduced by the switch, and stores it to its output
//   phase 4  barrier: nobody reads my input any more
//
// Cost: 4 hops. All of the input goes out over each rank's links, and comes in over the root's,
// once: shares that other ranks ask for and store to the root would take as much, and a hop more.
#pragma once

#include "algorithms/all_reduce/multicast_one_shot.hpp"
#include "algorithms/multicast_buffers.hpp"

namespace tutti {

template <class Reduction, class Team>
TUTTI_BODY Outcome reduce_multicast(Team& team, const KernelArgs& work) {
  return reduce_all_by_switch<Reduction>(team, work, work.rank == work.root);
}

template <class Team>
BodyOf<Team> host_reduce_multicast(DataType dtype, OpKind op) {
  return with_switch_reduction<Team>(dtype, op, [](auto reduction) -> BodyOf<Team> {
    return reduce_multicast<typename decltype(reduction)::Type, Team>;
  });
}

}  // namespace tutti
