// scatter/copy_engine: each rank fetches its piece of what the root shows by copy engine.
//
//   show   root: the others' pieces, staged, since nobody knows where its input lies; mine goes to
//          my output
//   meet   they are there
//   copy   others: my piece, from the root's staging to my output
//   meet   nobody reads the root's staging any more
//
// Cost: 2 hops and a few microseconds for each copy, (n-1)/n x bytes over the root's links, all of
// them by copy engines: kernels only meet.
#pragma once

#include "algorithms/host_program.hpp"
#include "algorithms/scatter/rows.hpp"

namespace tutti {

template <class Team>
BodyOf<Team> host_scatter_copy_engine(DataType, OpKind) {
  return run_by_team<Team, Reduction<std::uint8_t, Sum>, scatter_copy_engine>;
}

}  // namespace tutti
