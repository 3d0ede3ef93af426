// How the blocks of a cluster sum up tokens, in the order of device/token_sum.hpp: a warp a
// group, and every warp the groups. Whoever has summed up a group stores it into the shared memory
// of each block, whose mbarrier counts the bytes; so the blocks wait for data, not for each other.
//
// Two places for what is counted, taken in turn, are enough: a warp sends its groups of turn t + 1
// when it has read those of turn t, and everybody needs them before turn t + 2. Only warps with
// tiles take part, and blocks that have such warps. A block may end as soon as its warps do: all
// that is ever stored into it has come before its last turn is over.
#pragma once

#include "device/nvlink_peer/block_sum.cuh"
#include "device/nvlink_peer/cluster.cuh"

namespace tutti {

#if __CUDA_ARCH__ >= 900

// An mbarrier of this block that ends a phase when so many bytes have come.
class ByteCount {
 public:
  // By one thread. Others of the cluster see it behind the barrier that it then arrives at.
  __device__ void initialise() {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address(&word_)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  // By one thread, in each phase once; it may be late. Relaxed: it tells of no data.
  __device__ void expect(std::uint32_t bytes) {
    asm volatile(
        "mbarrier.arrive.expect_tx.relaxed.cta.shared::cta.b64 _, [%0], %1;" ::"r"(address(&word_)),
        "r"(bytes)
        : "memory");
  }
  // At block `rank` of the cluster: stores into the word that lies where `to` does here, and then
  // counts its bytes. Releases to whoever waits for them.
  __device__ void send(std::uint64_t* to, Slice rank, std::uint64_t value) {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u64 [%0], %1, [%2];" ::"r"(
                     address_at(rank, to)),
                 "l"(value), "r"(address_at(rank, &word_))
                 : "memory");
  }
  // Until phase `phase` is over, of which the parity is enough. Acquires what was counted. It ends
  // when the other warps of the cluster have sent, and what they wait for has a deadline.
  __device__ void wait(std::uint32_t phase) const {
    std::uint32_t over = 0;
    while (over == 0) {
      asm volatile(
          "{\n\t.reg .pred p;\n\t"
          "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n\t"
          "selp.u32 %0, 1, 0, p;\n\t}"
          : "=r"(over)
          : "r"(address(&word_)), "r"(phase & 1)
          : "memory");
    }
  }

 private:
  static __device__ std::uint32_t address(const std::uint64_t* word) {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(word));
  }
  static __device__ std::uint32_t address_at(Slice rank, const std::uint64_t* word) {
    std::uint32_t there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address(word)), "r"(rank));
    return there;
  }

  std::uint64_t word_;
};

class ClusterSum {
 public:
  // All threads of the cluster, one after the other: between the two its blocks become ready.
  __device__ void prepare() const {
    if (threadIdx.x == 0) {
      for (Turn& turn : turns()) turn.bytes.initialise();
    }
    __syncwarp();
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
  }
  __device__ void open() const {
    __syncwarp();
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
  }

  // f(k, parts) for those of a token's tiles that are this thread's, of which each has one part.
  // Uniform over the threads that have any: fails where f has failed in one, which goes on to the
  // end.
  template <class F>
  __device__ Outcome over(Slice tiles, F&& f, float& sum) {
    const Slice lane = threadIdx.x % kTokenLanes;
    if (Cluster::thread() - lane >= tiles) return Outcome::kDone;

    Turn& turn = turns()[turn_ % 2];
    const std::uint32_t phase = turn_++ / 2;
    const Slice groups = (tiles + kTokenLanes - 1) / kTokenLanes;
    if (threadIdx.x == 0) turn.bytes.expect(groups * sizeof turn.groups[0]);

    bool failed = false;
    TUTTI_NO_UNROLL
    for (Slice k = Cluster::thread(); k - lane < tiles; k += Cluster::threads()) {
      float parts[1] = {};
      if (k < tiles && !failed) failed = f(k, parts) != Outcome::kDone;
      failed = __any_sync(~0u, failed) != 0;
      const float group = sum_over_warp(parts[0]);
      // Lane r tells block r, if that has tiles.
      if (lane < Cluster::size() && lane * blockDim.x < tiles) {
        turn.bytes.send(&turn.groups[k / kTokenLanes], lane, word_of(group, failed));
      }
    }

    turn.bytes.wait(phase);
    sum = sum_of(turn.groups, groups, failed);
    return __any_sync(~0u, failed) != 0 ? Outcome::kFailed : Outcome::kDone;
  }

 private:
  static_assert(kMaxClusterBlocks <= kTokenLanes);

  struct Turn {
    ByteCount bytes;
    // A sum each, and above it whether somebody has failed.
    std::uint64_t groups[kMaxTokenGroups];
  };
  using Turns = Turn[2];
  static __device__ Turns& turns() {
    __shared__ Turns turns_of_block;
    return turns_of_block;
  }
  static __device__ std::uint64_t word_of(float group, bool failed) {
    return std::uint64_t{failed} << 32 | __float_as_uint(group);
  }
  static __device__ float sum_of(const std::uint64_t* words, Slice groups, bool& failed) {
    float mine = 0;
    for (Slice g = threadIdx.x % kTokenLanes; g < groups; g += kTokenLanes) {
      failed = failed || words[g] >> 32 != 0;
      mine += __uint_as_float(static_cast<std::uint32_t>(words[g]));
    }
    return sum_over_warp(mine);
  }

  std::uint32_t turn_ = 0;
};

#else

// Where there are no clusters, a block is one.
class ClusterSum {
 public:
  __device__ void prepare() const {}
  __device__ void open() const {}
  template <class F>
  __device__ Outcome over(Slice tiles, F&& f, float& sum) {
    return block_.over(tiles, f, sum);
  }

 private:
  BlockSum block_;
};

#endif

}  // namespace tutti
