// The ring of stages in shared memory through which A and B go from the producer to the consumers.
#pragma once

#include <cstdint>

#include "matmul/kernel/ptx.cuh"
#include "matmul/tiles.hpp"

namespace tutti {

inline constexpr std::uint32_t kSharedAlignment = 1024;
inline constexpr std::uint32_t kSharedBytes = 227 * 1024;  // that a block has on Hopper

// A tile as the kernel is compiled for it.
template <int kRows, int kColumns, int kStageCount, bool kRowMajor>
struct Tile {
  static constexpr bool kRowMajorB = kRowMajor;
  static constexpr int kM = kRows, kN = kColumns, kK = kMatmulTileK, kStages = kStageCount;
  static constexpr int kConsumers = 2;                  // warpgroups; each has half of the rows
  static constexpr int kBlocks = kM / kConsumers / 64;  // of 64 rows of a consumer
  // TMA brings a row-major B in squares of 64 x 64 elements.
  static constexpr int kSquares = (kN + 63) / 64;
  static constexpr std::uint32_t kBytesA = kM * kK * 2;
  static constexpr std::uint32_t kBytesB = (kRowMajorB ? kSquares * 64 : kN) * kK * 2;
  static constexpr std::uint32_t kStageBytes = kBytesA + kBytesB;
  static_assert(kM % (64 * kConsumers) == 0 && kM <= 256);  // a box has at most 256 rows
  static_assert(kN % 16 == 0 && kN <= 256);                 // half of them: whole groups of 8 rows
  static_assert(kStageBytes % kSharedAlignment == 0);
};

// What the blocks of a cluster have in their shared memory, at the same addresses.
template <class Tile>
struct Stages {
  static constexpr std::uint32_t kBytes = Tile::kStages * Tile::kStageBytes;
  static constexpr std::uint32_t kBarrierBytes = 2 * 8 * Tile::kStages;

  std::uint32_t data;      // aligned to 1024: what TMA swizzles begins there
  std::uint32_t barriers;  // aligned to 8

  __device__ std::uint32_t a(int stage) const { return data + stage * Tile::kStageBytes; }
  __device__ std::uint32_t b(int stage) const { return a(stage) + Tile::kBytesA; }
  // Of a stage: all bytes have come; all consumers of the cluster have read them.
  __device__ std::uint32_t full(int stage) const { return barriers + 8 * stage; }
  __device__ std::uint32_t empty(int stage) const { return full(Tile::kStages + stage); }

  __device__ void init(int blocks) const {
    for (int stage = 0; stage < Tile::kStages; ++stage) {
      ptx::barrier_init(full(stage), 1);
      ptx::barrier_init(empty(stage), 4 * Tile::kConsumers * blocks);  // one arrival per warp
    }
    ptx::barrier_init_fence();
  }
};

// Where in the ring one side is.
template <class Tile>
struct StageCursor {
  int stage = 0;
  std::uint32_t parity = 0;

  __device__ void advance() {
    if (++stage == Tile::kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

}  // namespace tutti
