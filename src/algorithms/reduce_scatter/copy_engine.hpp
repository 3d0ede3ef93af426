// reduce_scatter/copy_engine: each rank fetches its piece of everybody's input by copy engine, and
// reduces it.
//
//   show       my input: staged, if peers cannot address it
//   meet       every input is there
//   for each chunk k of my piece, copies ahead of kernels:
//     fetch k  from every other rank, next rank first, into slots of my staging
//     reduce k with the own one, to output; after the last chunk meet: nobody reads mine any more
//
// Chunks take turns with two halves of staging, so that one is fetched while the one before is
// reduced. A staged input takes passes of one chunk each, since it lies there, too.
//
// Cost: 2 hops and a few microseconds for each copy, (n-1)/n x bytes over each rank's links, all of
// them by copy engines. In place is safe: nobody else reads my piece of my input.
#pragma once

#include "algorithms/host_program.hpp"
#include "algorithms/reduce_scatter/rows.hpp"

namespace tutti {

template <class Team>
BodyOf<Team> host_reduce_scatter_copy_engine(DataType dtype, OpKind op) {
  return host_program<Team, reduce_scatter_copy_engine>(dtype, op);
}

}  // namespace tutti
