// A block that brings A: its warps load rows of the other ranks' shards, and store them to A.
#pragma once

#include "matmul/kernel/arrival.cuh"
#include "matmul/kernel/kernels.hpp"

namespace tutti {

// Units of 16 bytes that a thread has on their way.
inline constexpr int kPullUnits = 16;

// Where a lane is that has each 32nd unit of a part's rows, one row after another.
struct PullCursor {
  std::int64_t at;    // bytes
  std::int64_t skip;  // from a row's end to the next one's begin
  int unit;           // of its row
  int units;          // of a row

  __device__ __forceinline__ PullCursor(std::int64_t begin, std::int64_t pitch, int lane,
                                        int row_units)
      : at(begin + 16 * lane), skip(pitch - 16 * row_units), unit(lane), units(row_units) {
    settle();
  }
  // The present place; then it is at the next one.
  __device__ __forceinline__ std::int64_t next() {
    const std::int64_t place = at;
    at += 16 * 32;
    unit += 32;
    settle();
    return place;
  }

 private:
  __device__ __forceinline__ void settle() {
    for (; unit >= units; unit -= units) at += skip;
  }
};

// One warp of a puller.
struct Puller {
  const KGroupGate& gate;
  int lane;

  // All loads of a round are on their way before the first store waits for one.
  __device__ __forceinline__ void copy(const PullPart& part) const {
    const ArrivalPull& pull = gate.pulled;
    const ArrivalChunks& chunks = gate.chunks;
    const std::int64_t first = part.k_group * chunks.k_group;
    const std::int64_t left = pull.columns - first;
    const int row_units = static_cast<int>(left < chunks.k_group ? left : chunks.k_group) / 8;
    const std::byte* const shard = pull.shard[part.shard];
    const std::int64_t shard_row = part.row - part.shard * chunks.shard_rows;
    PullCursor from(shard_row * pull.shard_pitch + 2 * first, pull.shard_pitch, lane, row_units);
    PullCursor to(part.row * pull.pitch + 2 * first, pull.pitch, lane, row_units);
    const int units = part.rows * row_units;
    for (int unit = lane; unit < units; unit += 32 * kPullUnits) {
      uint4 values[kPullUnits];
#pragma unroll
      for (int i = 0; i < kPullUnits; ++i) {
        if (unit + 32 * i < units) device::impl::load_relaxed(values[i], shard + from.next());
      }
#pragma unroll
      for (int i = 0; i < kPullUnits; ++i) {
        if (unit + 32 * i < units) ptx::store_words(pull.to + to.next(), values[i]);
      }
    }
  }

  // The warp whose part is the last of the shard's k-group opens the flag, and leaves the counter
  // at zero. All of this is in this GPU's memory.
  __device__ __forceinline__ void count(const PullPart& part) const {
    __syncwarp();
    if (lane != 0) return;
    const int flag = part.shard * gate.chunks.k_groups + part.k_group;
    std::uint32_t* const counter = gate.pulled.counters + flag;
    unsigned before;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;"
                 : "=r"(before)
                 : "l"(counter), "r"(part.rows)
                 : "memory");
    if (before + static_cast<unsigned>(part.rows) != static_cast<unsigned>(part.shard_rows)) return;
    asm volatile("st.relaxed.gpu.global.u32 [%0], 0;" ::"l"(counter) : "memory");
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(gate.waits.flags + flag),
                 "r"(gate.waits.epoch)
                 : "memory");
  }
};

__device__ __forceinline__ void KGroupGate::pull() const {
  SystemWords words;
  const bool go = threadIdx.x != 0 || wait_for_chunk(words, waits, go_flag());
  if (__syncthreads_and(static_cast<int>(go)) == 0) return;
  const int thread = static_cast<int>(threadIdx.x);
  const Puller puller{*this, thread % 32};
  PullWalk walk(chunks, pulled, static_cast<int>(blockIdx.x) * kPullWarps + thread / 32);
  for (PullPart part; walk.next(part);) {
    puller.copy(part);
    puller.count(part);
  }
}

}  // namespace tutti
