// all_gather/ring and all_gather/ring_bidirectional: every piece goes around, from output to output
// (algorithms/ring.hpp), or through slots, and then one way.
//
// Nobody touches another rank's input. In place is safe: neighbours store the other pieces alone.
//
// Cost: n - 1 hops, or ceil((n-1)/2), behind a barrier; (n-1)/n x bytes over one link each way.
#pragma once

#include "algorithms/bodies.hpp"
#include "algorithms/ring.hpp"

namespace tutti {

template <class Team>
TUTTI_BODY Outcome all_gather_ring(Team& team, const KernelArgs& work) {
  using Bytes = Reduction<std::uint8_t, Sum>;  // of which none is added
  return go_around<RingTurns{.adds = false, .spreads = true}, Bytes>(team, work);
}

template <class Team>
BodyOf<Team> host_all_gather_ring(DataType, OpKind) {
  return all_gather_ring<Team>;
}

}  // namespace tutti
