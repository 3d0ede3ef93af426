// A block that brings A: one warp reads rows of the other ranks' shards into shared memory and
// stores them to A, both by bulk copies, each thread a row.
#pragma once

#include "matmul/kernel/arrival.cuh"
#include "matmul/kernel/kernels.hpp"

namespace tutti {

static_assert(kPullStages * kPullStageBytes <= static_cast<int>(kOwnRingBytes));
static_assert(kPullStages <= 2 * kMostOwnStages);  // barriers

// What a warp of a puller does. All its threads have the same steps.
struct Puller {
  const KGroupGate& gate;
  PullMemory memory;
  int lane;

  __device__ __forceinline__ std::uint32_t barrier(int step) const {
    return memory.barriers + 8 * (step % kPullStages);
  }
  // This thread's row of a step.
  __device__ __forceinline__ ptx::BulkCopy row(int step, std::uint32_t bytes,
                                               std::byte* global) const {
    return {global, memory.stages + step % kPullStages * kPullStageBytes + lane * bytes, bytes};
  }
  __device__ __forceinline__ std::uint32_t row_bytes(const PullStep& step) const {
    const int left = gate.pulled.columns - step.k_group * gate.chunks.k_group;
    return 2 * (left < gate.chunks.k_group ? left : gate.chunks.k_group);
  }
  __device__ __forceinline__ std::int64_t column_bytes(const PullStep& step) const {
    return std::int64_t{2} * step.k_group * gate.chunks.k_group;
  }

  __device__ __forceinline__ void load(int index, const PullStep& step) const {
    const std::uint32_t bytes = row_bytes(step);
    if (lane == 0) ptx::barrier_expect(barrier(index), bytes * step.rows);
    __syncwarp();
    if (lane >= step.rows) return;
    const std::int64_t at = step.row - step.shard * gate.chunks.shard_rows + lane;
    const std::byte* const from =
        gate.pulled.shard[step.shard] + at * gate.pulled.shard_pitch + column_bytes(step);
    ptx::bulk_load(row(index, bytes, const_cast<std::byte*>(from)), barrier(index));
  }

  __device__ __forceinline__ void store(int index, const PullStep& step) const {
    ptx::barrier_wait(barrier(index), index / kPullStages % 2, 1);
    if (lane < step.rows) {
      std::byte* const to =
          gate.pulled.to + (std::int64_t{step.row} + lane) * gate.pulled.pitch + column_bytes(step);
      ptx::bulk_store(row(index, row_bytes(step), to));
    }
    ptx::end_bulk_group();
  }

  // All stores of the step have arrived. The puller that is the last one with its part of the
  // shard's k-group opens the flag, and leaves the counter as it was.
  __device__ __forceinline__ void stored(const PullStep& step) const {
    __syncwarp();
    if (!step.last || lane != 0) return;
    const ArrivalChunks& chunks = gate.chunks;
    const int flag = step.shard * chunks.chunks * chunks.k_groups + step.k_group;
    const unsigned most = gate.pulled.pullers - 1;
    unsigned before = 0;
    asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
                 : "=r"(before)
                 : "l"(gate.pulled.counters + flag), "r"(most)
                 : "memory");
    if (before == most) SystemWords().release(gate.waits.flags + flag, gate.waits.epoch);
  }

  __device__ __forceinline__ void run(int puller) const {
    PullWalk loads(gate.chunks, gate.pulled, puller), stores = loads;
    PullStep step, next, before;
    bool more = loads.next(next);
    int loaded = 0;
    for (int index = 0; stores.next(step); ++index) {
      // The stage of the step before the last one is free.
      for (; more && loaded < index + kPullStages - 1; more = loads.next(next)) {
        load(loaded++, next);
      }
      store(index, step);
      ptx::wait_bulk_groups<1>();
      if (index > 0) stored(before);
      before = step;
    }
    ptx::wait_bulk_groups<0>();
    stored(before);
  }
};

__device__ __forceinline__ void KGroupGate::pull(PullMemory memory) const {
  if (threadIdx.x >= 32) return;
  const int lane = static_cast<int>(threadIdx.x);
  SystemWords words;
  bool go = true;
  if (lane == 0) {
    for (int stage = 0; stage < kPullStages; ++stage) {
      ptx::barrier_init(memory.barriers + 8 * stage, 1);
    }
    ptx::barrier_init_fence();
    go = wait_for_chunk(words, waits, go_flag());
  }
  go = __shfl_sync(~0U, static_cast<int>(go), 0) != 0;
  __syncwarp();
  if (!go) return;
  words.before_bulk_loads();
  Puller{*this, memory, lane}.run(static_cast<int>(blockIdx.x));
}

}  // namespace tutti
