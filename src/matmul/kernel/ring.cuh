// The ring of stages in shared memory through which A and B go from the producer to the consumers.
#pragma once

#include <cstdint>
#include <type_traits>

#include "matmul/kernel/kernels.hpp"
#include "matmul/kernel/ptx.cuh"
#include "matmul/kernel/work.hpp"

namespace tutti {

inline constexpr std::uint32_t kSharedAlignment = 1024;
inline constexpr std::uint32_t kSharedBytes = 227 * 1024;  // that a block has on Hopper

// The tiles that a kernel is compiled for: of so many rows, and of each number of columns.
template <int kRows, bool kRowMajor, int... kColumns>
struct Tiles {
  static constexpr bool kRowMajorB = kRowMajor;
  static constexpr int kM = kRows, kK = kMatmulTileK;
  static constexpr int kConsumers = 2;                  // warpgroups; each has half of the rows
  static constexpr int kBlocks = kM / kConsumers / 64;  // of 64 rows of a consumer
  static constexpr std::uint32_t kBytesA = kM * kK * 2;
  static_assert(kM % (64 * kConsumers) == 0 && kM <= 256);          // a box has at most 256 rows
  static_assert(((kColumns % 16 == 0 && kColumns <= 256) && ...));  // half: whole groups of 8 rows

  // TMA brings a row-major B in squares of 64 x 64 elements.
  static constexpr __host__ __device__ int squares(int columns) { return (columns + 63) / 64; }
  static constexpr __host__ __device__ std::uint32_t stage_bytes(int columns) {
    return matmul_stage_bytes(kM, columns, kRowMajorB);
  }
  // Calls `body` with the number of columns as a type.
  template <class Body>
  static __device__ __forceinline__ void with(int columns, const Body& body) {
    (void)((columns == kColumns && (body(std::integral_constant<int, kColumns>()), true)) || ...);
  }
};

// What the blocks of a cluster have in their shared memory, at the same addresses.
template <class Tiles>
struct Stages {
  std::uint32_t data;      // aligned to 1024: what TMA swizzles begins there
  std::uint32_t barriers;  // aligned to 8
  int count;
  std::uint32_t bytes;  // from one stage to the next

  __device__ std::uint32_t a(int stage) const { return data + stage * bytes; }
  __device__ std::uint32_t b(int stage) const { return a(stage) + Tiles::kBytesA; }
  // Of a stage: all bytes have come; all consumers of the cluster have read them.
  __device__ std::uint32_t full(int stage) const { return barriers + 16 * stage; }
  __device__ std::uint32_t empty(int stage) const { return full(stage) + 8; }

  __device__ void init(int blocks) const {
    for (int stage = 0; stage < count; ++stage) {
      ptx::barrier_init(full(stage), 1);
      ptx::barrier_init(empty(stage), 4 * Tiles::kConsumers * blocks);  // one arrival per warp
    }
    ptx::barrier_init_fence();
  }
};

// Where in the ring one side is.
struct StageCursor {
  int count;  // of stages
  int stage = 0;
  std::uint32_t parity = 0;

  __device__ void advance() {
    if (++stage == count) {
      stage = 0;
      parity ^= 1;
    }
  }
};

}  // namespace tutti
