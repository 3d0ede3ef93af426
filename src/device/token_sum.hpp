// In which order the parts of a token are summed up, one part for every 16 bytes of it: one that
// depends on their number alone, so that neither the grid nor the team shows in the bits.
//
//   32 parts in a row are a group, summed as a tree: part k with part k + 16, then 8, 4, 2 and 1.
//   Group g is added to lane g % 32, one behind the other, and the lanes are summed as parts are.
//
// Missing parts count as 0. On GPUs a warp sums a group (device/nvlink_peer/block_sum.cuh, and
// over several blocks cluster_sum.cuh).
#pragma once

#include "device/team.hpp"

namespace tutti {

inline constexpr int kTokenLanes = 32;
inline constexpr int kMaxTokenBytes = 64 * 1024;
inline constexpr int kMaxTokenGroups = kMaxTokenBytes / 16 / kTokenLanes;

// Leaves nothing of `part` but its sum.
template <int kParts>
TUTTI_BODY float sum_as_tree(float (&part)[kParts]) {
  TUTTI_UNROLL
  for (int step = kParts / 2; step > 0; step /= 2) {
    TUTTI_UNROLL
    for (int k = 0; k < step; ++k) part[k] += part[k + step];
  }
  return part[0];
}

// For teams whose block is one thread: parts come in their order.
class TokenSum {
 public:
  TUTTI_BODY void add(float part) {
    group_[parts_++] = part;
    if (parts_ == kTokenLanes) end_group();
  }
  TUTTI_BODY float total() {
    if (parts_ > 0) end_group();
    return sum_as_tree(lane_);
  }

 private:
  TUTTI_BODY void end_group() {
    for (; parts_ < kTokenLanes; ++parts_) group_[parts_] = 0;
    lane_[groups_++ % kTokenLanes] += sum_as_tree(group_);
    parts_ = 0;
  }

  float group_[kTokenLanes];
  float lane_[kTokenLanes] = {};
  int parts_ = 0, groups_ = 0;
};

}  // namespace tutti
