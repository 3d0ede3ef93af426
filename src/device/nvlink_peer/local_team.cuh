// The verbs of tokens for a kernel that needs no peers, behind one that did. A block has whole
// tokens, and holds what it has registers for.
#pragma once

#include "device/nvlink_peer/token_verbs.cuh"

namespace tutti {

class LocalTeam : public TokenVerbs<SingleBlock> {
 public:
  __device__ explicit LocalTeam(const KernelArgs& work) : work_(work) {}

  __device__ void launch_wait() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
    poisoned_ = load_relaxed_gpu(&work_.control->poison) != 0;
  }
  __device__ void launch_trigger() const {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
  }

  // Loops over what is held are unrolled, and all its loads are under way before one is used.
  template <class Load, class Beside, class F>
  __device__ Outcome sum_of_loaded(Slice tiles, Load&& load, Beside&& beside, F&& f, float& sum) {
    __shared__ float groups[2][kMaxTokenGroups];  // of the token before, a warp may be reading
    auto& own = groups[turn_];
    turn_ ^= 1;
    TUTTI_UNROLL
    for (Slice i = 0; i < kHeldTiles; ++i) {
      const Slice k = tile_of_thread(i);
      held_[i] = k < tiles ? load(k) : Words{};
      beside_[i] = k < tiles ? beside(k) : Words{};
    }
    const auto add = [&](Slice k, const Words& words) {
      float parts[kTileParts] = {};
      if (k < tiles) f(k, words, parts);
      const float group = sum_over_warp(parts[0]);
      if (k % kTokenLanes == 0 && k < tiles) own[k / kTokenLanes] = group;
    };
    TUTTI_UNROLL
    for (Slice i = 0; i < kHeldTiles; ++i) add(tile_of_thread(i), held_[i]);
    TUTTI_NO_UNROLL
    for (Slice first = kHeldTiles * blockDim.x; first < tiles; first += blockDim.x) {
      const Slice k = first + threadIdx.x;
      add(k, k < tiles ? load(k) : Words{});
    }
    if (__syncthreads_or(poisoned_)) return Outcome::kFailed;

    sum = sum_of_groups(own, tiles);
    return Outcome::kDone;
  }

  template <class Load, class Beside, class F>
  __device__ void for_each_loaded(Slice tiles, Load&& load, Beside&& beside, F&& f) const {
    TUTTI_UNROLL
    for (Slice i = 0; i < kHeldTiles; ++i) {
      const Slice k = tile_of_thread(i);
      if (k < tiles) f(k, held_[i], beside_[i]);
    }
    TUTTI_NO_UNROLL
    for (Slice k = tile_of_thread(kHeldTiles); k < tiles; k += blockDim.x) f(k, load(k), beside(k));
  }

 private:
  static constexpr Slice kHeldTiles = 2;  // of a token, by each thread

  static __device__ Slice tile_of_thread(Slice i) { return threadIdx.x + i * blockDim.x; }

  const KernelArgs& work_;
  Words held_[kHeldTiles], beside_[kHeldTiles];
  int turn_ = 0;
  bool poisoned_ = false;
};

}  // namespace tutti
