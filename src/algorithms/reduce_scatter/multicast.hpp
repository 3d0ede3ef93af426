// reduce_scatter/multicast: each rank has the switch reduce its piece.
//
//   phase 1  stage in: a slot of every rank's piece (only for inputs that peers cannot address)
//   phase 2  barrier: every input is there
//   phase 3  load each tile of my piece reduced by the switch, store to own output
//   phase 4  barrier: nobody reads my input any more
//
// Cost: 4 hops, as pull. All of the input goes out over each rank's links, 1/n of it comes in. In
// place is safe as there: the switch gives a tile before the thread that asked for it overwrites
// it.
#pragma once

#include "algorithms/multicast_buffers.hpp"
#include "algorithms/reduce_scatter/pull.hpp"

namespace tutti {

template <class Reduction, class Team>
TUTTI_BODY Outcome reduce_scatter_multicast(Team& team, const KernelArgs& work) {
  return reduce_my_piece<Reduction>(team, work, [&](const auto& buffers) {
    const Fabric<Reduction, Team> fabric(team, work, buffers);
    return [fabric](auto access, TileAt tile) { return fabric.reduce(access, tile); };
  });
}

template <class Team>
BodyOf<Team> host_reduce_scatter_multicast(DataType dtype, OpKind op) {
  return with_switch_reduction<Team>(dtype, op, [](auto reduction) -> BodyOf<Team> {
    return reduce_scatter_multicast<typename decltype(reduction)::Type, Team>;
  });
}

}  // namespace tutti
