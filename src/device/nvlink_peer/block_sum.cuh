// How the threads of a block sum up a token, in the order of device/token_sum.hpp: a warp a
// group, and every warp the groups. The block meets once; it is of whole warps
// (executors/peer/cuda.cpp).
#pragma once

#include "device/packets.hpp"
#include "device/token_sum.hpp"

namespace tutti {

// In every lane.
__device__ __forceinline__ float sum_over_warp(float part) {
  TUTTI_UNROLL
  for (int step = kTokenLanes / 2; step > 0; step /= 2) {
    part += __shfl_xor_sync(~0u, part, step);
  }
  return part;
}

// Of the groups of a token of so many tiles: every warp the same.
__device__ __forceinline__ float sum_of_groups(const float* groups, Slice tiles) {
  const Slice all = (tiles + kTokenLanes - 1) / kTokenLanes;
  float lane = 0;
  for (Slice g = threadIdx.x % kTokenLanes; g < all; g += kTokenLanes) lane += groups[g];
  return sum_over_warp(lane);
}

class BlockSum {
 public:
  // f(k, parts) for those of a token's tiles that are this thread's, of which each has one part.
  // Uniform over the block: fails where f has failed in any thread, which goes on to the end.
  template <class F>
  __device__ Outcome over(Slice tiles, F&& f, float& sum) {
    // Where the sums of the token before are, a warp may still be reading.
    __shared__ float groups[2][kMaxTokenGroups];
    auto& own = groups[turn_];
    turn_ ^= 1;

    bool failed = false;
    TUTTI_NO_UNROLL
    for (Slice first = 0; first < tiles; first += blockDim.x) {
      const Slice k = first + threadIdx.x;
      float parts[1] = {};
      if (k < tiles && !failed) failed = f(k, parts) != Outcome::kDone;
      const float group = sum_over_warp(parts[0]);
      if (k % kTokenLanes == 0 && k < tiles) own[k / kTokenLanes] = group;
    }
    if (__syncthreads_or(failed)) return Outcome::kFailed;

    sum = sum_of_groups(own, tiles);
    return Outcome::kDone;
  }

 private:
  int turn_ = 0;
};

}  // namespace tutti
