// all_to_all/copy_engine: each rank fetches its piece of everybody's input by copy engine.
//
//   show   my pieces for the others: staged, if peers cannot address my input
//   meet   every input is there
//   copy   my piece of every other rank's input to that rank's place in my output, next rank first;
//          my own, too
//   meet   nobody reads my input any more
//
// Cost: 2 hops and a few microseconds for each copy, (n-1)/n x bytes over each rank's links, all of
// them by copy engines: kernels only meet.
#pragma once

#include "algorithms/all_to_all/rows.hpp"
#include "algorithms/host_program.hpp"

namespace tutti {

template <class Team>
BodyOf<Team> host_all_to_all_copy_engine(DataType, OpKind) {
  return run_by_team<Team, Reduction<std::uint8_t, Sum>, all_to_all_copy_engine>;
}

}  // namespace tutti
