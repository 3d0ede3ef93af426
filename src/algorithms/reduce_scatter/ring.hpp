// reduce_scatter/ring: sums of pieces go around, and end where they are whole
// (algorithms/ring.hpp).
//
// Outputs hold one piece, so sums on their way go through slots, whatever the buffers are: no peer
// touches any. In place is safe: my piece of the input is what I add last, an element by the thread
// that then overwrites it.
//
// Cost: n - 1 hops behind a barrier; (n-1)/n x bytes over one link each way.
#pragma once

#include "algorithms/instantiate.hpp"
#include "algorithms/ring.hpp"

namespace tutti {

template <class Reduction, class Team>
TUTTI_BODY Outcome reduce_scatter_ring(Team& team, const KernelArgs& work) {
  return go_around<RingTurns{.adds = true, .spreads = false}, Reduction>(team, work);
}

template <class Team>
BodyOf<Team> host_reduce_scatter_ring(DataType dtype, OpKind op) {
  return with_column_reduction<Team>(dtype, op, [](auto reduction) -> BodyOf<Team> {
    return reduce_scatter_ring<typename decltype(reduction)::Type, Team>;
  });
}

}  // namespace tutti
