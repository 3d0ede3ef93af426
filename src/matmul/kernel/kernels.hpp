// The kernels as the host knows them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "matmul/tiles.hpp"
#include "tutti/matmul.hpp"

namespace tutti {

inline constexpr int kOwnMatmulThreads = 3 * 128;

// Shared memory of the ring, and the barriers that there is room for.
inline constexpr std::uint32_t kOwnRingBytes = 200 * 1024;
inline constexpr int kMostOwnStages = 6;

constexpr bool stages_fit() {
  for (const MatmulTile& tile : kMatmulTiles) {
    const int bytes = tile.stages * matmul_stage_bytes(tile.m, tile.n, true);
    if (tile.stages > kMostOwnStages || bytes > static_cast<int>(kOwnRingBytes)) return false;
  }
  return true;
}
static_assert(stages_fit());

struct OwnKernel {
  const void* function = nullptr;
  std::size_t shared_bytes = 0;
};

// For tiles of so many rows, 128 or 256; `dtype`: bf16 or fp16.
OwnKernel own_kernel(int rows, DataType dtype, MatrixLayout b_layout);
// Those with an ArrivalGate, and with a KGroupGate.
OwnKernel own_gated_kernel(int rows, DataType dtype, MatrixLayout b_layout);
OwnKernel own_k_groups_kernel(int rows, DataType dtype, MatrixLayout b_layout);

}  // namespace tutti
