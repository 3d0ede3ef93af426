// How the threads of a block sum up a token, in the order of transport/token_sum.hpp: a warp a
// group, and every warp the groups. The block meets once; it is of whole warps (launch/cuda.cpp).
#pragma once

#include "transport/packets.hpp"
#include "transport/token_sum.hpp"

namespace tutti {

// In every lane.
__device__ __forceinline__ float sum_over_warp(float part) {
  TUTTI_UNROLL
  for (int step = kTokenLanes / 2; step > 0; step /= 2) {
    part += __shfl_xor_sync(~0u, part, step);
  }
  return part;
}

// Of `kSums` tokens at a time.
template <int kSums>
class BlockSum {
 public:
  // f(k, parts) for those of a token's tiles that are this thread's, of which each has one part in
  // each of `count` sums. Uniform over the block: fails where f has failed in any thread, which
  // goes on to the end.
  template <class F>
  __device__ Outcome over(Slice tiles, int count, F&& f, float (&sums)[kSums]) {
    // Where the sums of the token before are, a warp may still be reading.
    __shared__ float groups[2][kSums][kMaxTokenGroups];
    auto& own = groups[turn_];
    turn_ ^= 1;

    bool failed = false;
    TUTTI_NO_UNROLL
    for (Slice first = 0; first < tiles; first += blockDim.x) {
      const Slice k = first + threadIdx.x;
      float parts[kSums][1] = {};
      if (k < tiles && !failed) failed = f(k, parts) != Outcome::kDone;
      TUTTI_UNROLL
      for (int s = 0; s < kSums; ++s) {
        if (s >= count) break;
        const float group = sum_over_warp(parts[s][0]);
        if (k % kTokenLanes == 0 && k < tiles) own[s][k / kTokenLanes] = group;
      }
    }
    if (__syncthreads_or(failed)) return Outcome::kFailed;

    const Slice all = (tiles + kTokenLanes - 1) / kTokenLanes;
    TUTTI_UNROLL
    for (int s = 0; s < kSums; ++s) {
      if (s >= count) break;
      float lane = 0;
      for (Slice g = threadIdx.x % kTokenLanes; g < all; g += kTokenLanes) lane += own[s][g];
      sums[s] = sum_over_warp(lane);
    }
    return Outcome::kDone;
  }

 private:
  int turn_ = 0;
};

}  // namespace tutti
