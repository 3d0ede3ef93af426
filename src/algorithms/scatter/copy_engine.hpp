// scatter/copy_engine: each rank fetches its piece of what the root shows by copy engine.
//
//   show   root: the others' pieces, staged, since nobody knows where its input lies
//   meet   they are there
//   copy   my piece, from the root's staging to my output; root: from my input
//   meet   nobody reads the root's staging any more
//
// Cost: 2 hops and a few microseconds for each copy, (n-1)/n x bytes over the root's links, all of
// them by copy engines: kernels only meet.
#pragma once

#include <cstddef>

namespace tutti {

class Stages;
struct Work;

void scatter_copy_engine(Stages& stages, const Work& work, std::size_t element_bytes);

}  // namespace tutti
