// broadcast/copy_engine: the others fetch a share each from the root, and then those of each other,
// by copy engine.
//
//   show   root: my input, in my output; staged, if peers cannot address outputs
//   meet   it is there
//   copy   my share of it
//   meet   every share is there (not where there are two ranks: then a share is all)
//   copy   the shares of the others but the root, next rank first
//   copy   all of it from staging to my output, if it is there
//   meet   nobody reads my output any more, or my staging (of more than two ranks behind the last
//          pass alone)
//
// Cost: 3 hops and a few microseconds for each copy, 1 x bytes over the root's links and then
// (n-2)/(n-1) x bytes over those of the others, all of them by copy engines: kernels only meet.
#pragma once

#include "algorithms/broadcast/rows.hpp"
#include "algorithms/host_program.hpp"

namespace tutti {

template <class Team>
BodyOf<Team> host_broadcast_copy_engine(DataType, OpKind) {
  return run_by_team<Team, Reduction<std::uint8_t, Sum>, broadcast_copy_engine>;
}

}  // namespace tutti
