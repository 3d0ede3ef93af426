// all_gather/copy_engine: each rank fetches everybody's input by copy engine.
//
//   show   my input: staged, if peers cannot address it
//   meet   every input is there
//   copy   every other rank's input to its place in my output, next rank first; my own, too
//   meet   nobody reads my input any more
//
// Cost: 2 hops and a few microseconds for each copy, (n-1)/n x bytes over each rank's links, all of
// them by copy engines: kernels only meet. In place is safe: each rank writes where peers do not
// read.
#pragma once

#include "algorithms/all_gather/rows.hpp"
#include "algorithms/host_program.hpp"

namespace tutti {

template <class Team>
BodyOf<Team> host_all_gather_copy_engine(DataType, OpKind) {
  return run_by_team<Team, Reduction<std::uint8_t, Sum>, all_gather_copy_engine>;
}

}  // namespace tutti
