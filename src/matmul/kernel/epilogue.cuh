// What becomes of a tile's sums: bias, one rounding, and stores.
//
// Each warp stores its own rows, through 2 KiB of shared memory that turn the layout of
// accumulators into lines of 128 bytes, and waits for no other warp. Bulk stores (TMA) would stand
// in one queue with the loads of the next tile, and keep the warps waiting for their staging
// memory.
#pragma once

#include "matmul/kernel/consumer.cuh"

namespace tutti {

// Two neighbours of a row as C has them, the first in the lower half.
template <class Element>
__device__ __forceinline__ std::uint32_t rounded_pair(float first, float second) {
  std::uint32_t pair;
  if constexpr (std::is_same_v<Element, Half>) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  } else {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  }
  return pair;
}

template <class Tiles, class Element>
struct StoreEpilogue {
  static constexpr int kRows = 16;  // of a warp, in every 64 rows of its warpgroup
  static constexpr std::uint32_t kChunkBytes = kRows * 128;
  static constexpr std::uint32_t kBytes = Tiles::kConsumers * 4 * kChunkBytes;

  std::uint32_t staging;  // this warp's chunk, aligned to 1024
  int warp;               // of the warpgroup
  int lane;

  __device__ StoreEpilogue(std::uint32_t memory, int thread)
      : staging(memory + thread / 32 * kChunkBytes), warp(thread / 32 % 4), lane(thread % 32) {}

  // Four sums of a thread are two neighbours in each of two rows, of 8 columns.
  template <int kWidth>
  __device__ __forceinline__ void add_bias(const OwnProductArguments& product, float* sums,
                                           int column) {
    const auto* const bias = static_cast<const Element*>(product.bias);
#pragma unroll
    for (int j = 0; j < kWidth / 8; ++j) {
      const int at = column + 8 * j + 2 * (lane % 4);
      const float first = at < product.n ? to_float(bias[at]) : 0;
      const float second = at + 1 < product.n ? to_float(bias[at + 1]) : 0;
      sums[4 * j] += first;
      sums[4 * j + 1] += second;
      sums[4 * j + 2] += first;
      sums[4 * j + 3] += second;
    }
  }

  // Where a unit of 16 bytes lies in the chunk: units of a row change places, so that neither the
  // stores of columns nor the loads of rows meet in a bank.
  template <int kUnits>
  __device__ std::uint32_t place_of(int row, int unit) const {
    const int swizzle = row * kUnits / 8 % kUnits;
    return staging + (row * kUnits + (unit ^ swizzle)) * 16;
  }

  // Up to eight elements of a row. What follows the last column may be other data.
  __device__ void store_at_edge(Element* to, uint4 words, int columns) {
    if (columns >= 8) {
      ptx::store_words(to, words);
      return;
    }
    const std::uint32_t pairs[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (i < columns) to[i] = Element{static_cast<std::uint16_t>(pairs[i / 2] >> (i % 2 * 16))};
    }
  }

  // 16 rows of kWidth columns; `rows`, `column`: where in C they begin, and rows end. All loads of
  // the turned chunk are on their way before the first store.
  template <int kWidth>
  __device__ __forceinline__ void store(const OwnProductArguments& product, float* sums,
                                        TileRows rows, int column) {
    constexpr int kUnits = kWidth / 8;  // of a row
    constexpr int kOfThread = kRows * kUnits / 32,
                  kStep = 32 / kUnits;  // rows from one to the next
    if (product.bias != nullptr) add_bias<kWidth>(product, sums, column);
#pragma unroll
    for (int j = 0; j < kUnits; j += 2) {
      const float* const four = sums + 4 * j;
      const std::uint32_t words[4] = {
          rounded_pair<Element>(four[0], four[1]), rounded_pair<Element>(four[2], four[3]),
          rounded_pair<Element>(four[4], four[5]), rounded_pair<Element>(four[6], four[7])};
      ptx::store_matrices(place_of<kUnits>(lane % 16, j + lane / 16), words);
    }
    __syncwarp();
    uint4 words[kOfThread];
    const int first = lane / kUnits;
#pragma unroll
    for (int i = 0; i < kOfThread; ++i) {
      words[i] = ptx::load_words(place_of<kUnits>(first + i * kStep, lane % kUnits));
    }
    __syncwarp();  // the chunk may be overwritten
    const int r = rows.row + first, c = column + lane % kUnits * 8;
    auto* const to = static_cast<Element*>(product.c) + r * product.ldc + c;
    if (rows.row + kRows <= rows.end && column + kWidth <= product.n) {
#pragma unroll
      for (int i = 0; i < kOfThread; ++i) {
        ptx::store_words(to + i * kStep * product.ldc, words[i]);
      }
      return;
    }
#pragma unroll
    for (int i = 0; i < kOfThread; ++i) {
      if (r + i * kStep < rows.end) {
        store_at_edge(to + i * kStep * product.ldc, words[i], product.n - c);
      }
    }
  }

  // The columns of a block from kFirst on. A chunk has 64, and at the end 32 or 16.
  template <int kFirst, int kColumns>
  __device__ __forceinline__ void store_from(const OwnProductArguments& product,
                                             float (&sums)[kColumns / 2], TileRows rows,
                                             int column) {
    constexpr int kRest = kColumns - kFirst, kWidth = kRest >= 64 ? 64 : kRest >= 32 ? 32 : 16;
    if constexpr (kRest > 0) {
      store<kWidth>(product, sums + kFirst / 2, rows, column + kFirst);
      store_from<kFirst + kWidth, kColumns>(product, sums, rows, column);
    }
  }

  // `rows`, `column`: of this warpgroup's part of the tile.
  template <int kColumns>
  __device__ __forceinline__ void run(const OwnProductArguments& product,
                                      float (&sums)[Tiles::kBlocks][kColumns / 2], TileRows rows,
                                      int column) {
#pragma unroll
    for (int block = 0; block < Tiles::kBlocks; ++block) {
      store_from<0, kColumns>(product, sums[block],
                              {rows.row + 64 * block + kRows * warp, rows.end}, column);
    }
  }
};

}  // namespace tutti
