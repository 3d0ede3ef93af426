// The kernel between copies of algorithms that reduce and whose bytes copy engines move.
#pragma once

#include "algorithms/descriptor.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/team_stages.hpp"

namespace tutti {

// A few copies of each share's length: measured with bare programs on 2 and 4 H200s, one more of
// them costs 4 us.
inline Geometry copy_engine_geometry(std::size_t bytes) {
  constexpr std::size_t kLeast = 4 * MiB;
  Geometry geometry = spread(bytes, 512, 64);
  geometry.chunk_bytes = std::max(round_up(ceil_div(bytes, 2), 256), kLeast);
  return geometry;
}

struct BetweenCopies {
  using Kernel = PeerKernel;
  using Types = EveryReduction;
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  // All in own memory.
  static constexpr KernelPromises kPromises{.loads = kMaxCudaRanks, .stores = 1, .barriers = 1};

  // What copies have brought, and what they have taken away, the stream has seen to: a kernel that
  // only meets has nothing of its own to release.
  template <class Reduction, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work) {
    (void)team.buffers();
    const Publish publish = work.count == 0 ? Publish::kEarlierKernels : Publish::kStores;
    const Outcome outcome = reduce_between_copies<Reduction>(team, work, publish);
    return work.meets && outcome == Outcome::kDone ? team.finish() : outcome;
  }
};

}  // namespace tutti
