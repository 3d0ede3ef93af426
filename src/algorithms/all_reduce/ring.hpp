// all_reduce/ring and all_reduce/ring_bidirectional: sums go around, and then come around again
// (algorithms/ring.hpp). Rank r makes share r + 1 whole.
//
// In place chunks go through slots, which is safe there: a chunk of the output is stored when it is
// whole, for which its input was read.
//
// Cost: 2(n-1) hops, or n - 1 + ceil((n-1)/2), behind a barrier; 2(n-1)/n x bytes over one link
// each way.
#pragma once

#include "algorithms/instantiate.hpp"
#include "algorithms/ring.hpp"

namespace tutti {

template <class Reduction, class Team>
TUTTI_BODY Outcome all_reduce_ring(Team& team, const KernelArgs& work) {
  return go_around<RingTurns{.adds = true, .spreads = true}, Reduction>(team, work);
}

template <class Team>
BodyOf<Team> host_all_reduce_ring(DataType dtype, OpKind op) {
  return with_column_reduction<Team>(dtype, op, [](auto reduction) -> BodyOf<Team> {
    return all_reduce_ring<typename decltype(reduction)::Type, Team>;
  });
}

}  // namespace tutti
