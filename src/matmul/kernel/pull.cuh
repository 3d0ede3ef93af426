// A block that brings A: its warps load rows of the other ranks' shards, and store them to A.
#pragma once

#include "matmul/kernel/arrival.cuh"
#include "matmul/kernel/kernels.hpp"

namespace tutti {

// Units of 16 bytes that a thread has on their way.
inline constexpr int kPullUnits = 24;

// Rows of a part in units. From one of a lane's units to its next, 32 units on, it goes so many
// rows and units further.
struct PullRows {
  int units;  // of a row
  int rows, left;

  __device__ __forceinline__ explicit PullRows(int of_row)
      : units(of_row), rows(of_row > 32 ? 0 : 32 / of_row), left(32 - rows * of_row) {}
};

// Where a lane is in a matrix.
class PullCursor {
 public:
  __device__ __forceinline__ PullCursor(const PullRows& rows, std::byte* begin, std::int64_t pitch,
                                        int lane)
      : unit_(lane % rows.units),
        units_(rows.units),
        left_(rows.left),
        step_(rows.rows * pitch + 16 * rows.left),
        wrap_(pitch - 16 * rows.units),
        at_(begin + lane / rows.units * pitch + 16 * unit_) {}

  // The present place; then it is at the next one.
  __device__ __forceinline__ std::byte* next() {
    std::byte* const place = at_;
    at_ += step_;
    unit_ += left_;
    if (unit_ >= units_) {
      unit_ -= units_;
      at_ += wrap_;
    }
    return place;
  }

 private:
  int unit_, units_, left_;
  std::int64_t step_, wrap_;  // bytes
  std::byte* at_;
};

// One warp of a puller.
struct Puller {
  const KGroupGate& gate;
  int lane;

  // All loads of a round are on their way before the first store waits for one. After the first
  // ones `meanwhile` runs.
  template <class Meanwhile>
  __device__ __forceinline__ void copy(const PullPart& part, const Meanwhile& meanwhile) const {
    const ArrivalPull& pull = gate.pulled;
    const ArrivalChunks& chunks = gate.chunks;
    const int first = part.k_group * chunks.k_group, left = pull.columns - first;
    const PullRows rows((left < chunks.k_group ? left : chunks.k_group) / 8);
    const std::int64_t shard_row = part.row - part.shard * chunks.shard_rows;
    const std::byte* const shard =
        pull.shard[part.shard] + shard_row * pull.shard_pitch + std::int64_t{2} * first;
    PullCursor from(rows, const_cast<std::byte*>(shard), pull.shard_pitch, lane);
    PullCursor to(rows, pull.to + part.row * pull.pitch + std::int64_t{2} * first, pull.pitch,
                  lane);
    const int units = part.rows * rows.units;
    for (int round = 0; round < units; round += 32 * kPullUnits) {
      const int unit = round + lane;
      uint4 values[kPullUnits];
#pragma unroll
      for (int i = 0; i < kPullUnits; ++i) {
        if (unit + 32 * i < units) device::impl::load_relaxed(values[i], from.next());
      }
      if (round == 0) meanwhile();
#pragma unroll
      for (int i = 0; i < kPullUnits; ++i) {
        if (unit + 32 * i < units) ptx::store_words(to.next(), values[i]);
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
  PullPart before;  // not yet counted; at first none
  for (PullPart part; walk.next(part); before = part) {
    puller.copy(part, [&] {
      if (before.rows > 0) puller.count(before);
    });
  }
  if (before.rows > 0) puller.count(before);
}

}  // namespace tutti
