// One thread that waits for what the producer of its block loads, ahead of it.
#pragma once

#include "matmul/kernel/ring.cuh"
#include "matmul/kernel/steps.hpp"

namespace tutti {

// Two words in shared memory: how many steps are open, and how many the producer has begun.
struct StepWord {
  std::uint32_t address;

  __device__ __forceinline__ int acquire() const {
    int count;
    asm volatile("ld.acquire.cta.shared::cta.u32 %0, [%1];"
                 : "=r"(count)
                 : "r"(address)
                 : "memory");
    return count;
  }
  __device__ __forceinline__ void release(int count) const {
    asm volatile("st.release.cta.shared::cta.u32 [%0], %1;" ::"r"(address), "r"(count) : "memory");
  }
  // A hint, which orders nothing.
  __device__ __forceinline__ void tell_begun(int count) const {
    asm volatile("st.relaxed.cta.shared::cta.u32 [%0], %1;" ::"r"(address + 4), "r"(count)
                 : "memory");
  }
  __device__ __forceinline__ int begun() const {
    int count;
    asm volatile("ld.relaxed.cta.shared::cta.u32 %0, [%1];"
                 : "=r"(count)
                 : "r"(address + 4)
                 : "memory");
    return count;
  }
  // Before this fence, which is the issuing thread's, TMA does not see what was acquired. A fence
  // of shared memory, too, would first wait for all of the thread's own accesses, which takes as
  // long as an acquire.
  __device__ __forceinline__ void before_bulk_loads() const {
    asm volatile("fence.proxy.async.global;" ::: "memory");
  }
};

// Nothing where the gate is always open.
template <class Tiles, class Gate>
struct Leader {
  const OwnMatmulArguments& arguments;
  const Gate& gate;
  int rank;  // in the cluster
  StepWord word;
  typename Gate::Seen seen = {};

  // Not far ahead: polls of flags that are needed much later take bandwidth of the L2 from what
  // brings A.
  __device__ __forceinline__ void await_producer(int opened) const {
    const auto is_near = [&] {
      if (opened - word.begun() < gate.steps_ahead()) return true;
      __nanosleep(200);
      return false;
    };
    ptx::spin(is_near, gate.patience());
  }

  __device__ __forceinline__ void run(int cluster, int clusters) {
    if constexpr (Gate::kWaits) {
      LeadingSteps steps;
      typename Gate::Cursor cursor;
      const int columns = arguments.stages_of_k * Tiles::kK, at_once = gate.k_group(arguments);
      for (int index = cluster; index < gate.tiles(arguments); index += clusters) {
        const TileWork tile = work_of<Tiles>(arguments, gate, cursor, {index, rank});
        const int end = tile.row + Tiles::kM;
        GroupOfRows rows{tile.row, end < tile.end ? end : tile.end};
        for (int k = 0; k < columns; k += at_once, ++rows.k_group) {
          await_producer(steps.opened());
          if (!steps.next(word, [&] { return gate.wait(seen, rows); })) return;
        }
      }
    }
  }
};

}  // namespace tutti
