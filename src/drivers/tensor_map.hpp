// A description of a matrix for Hopper's bulk tensor copies (TMA).
#pragma once

#include <cstddef>
#include <cstdint>

#include "tutti/types.hpp"

namespace tutti {

// Of addresses, and of distances between rows, in bytes.
inline constexpr std::size_t kTmaAlignment = 16;
inline constexpr std::size_t kMostTmaDistanceBytes = (std::size_t{1} << 40) - 1;

// As the driver encodes it: CUtensorMap. Kernels get it by value.
struct alignas(64) TensorMap {
  std::uint64_t words[16];
};

// A matrix whose rows are contiguous, and the boxes that are copied from it to shared memory. Rows
// of a box have at most 128 bytes and are swizzled over 1024. Elements outside the matrix are 0.
struct TensorMapShape {
  DataType dtype = DataType::kBfloat16;  // bf16 or fp16
  const void* address = nullptr;         // a multiple of 16
  std::size_t columns = 0, rows = 0;
  std::size_t leading = 0;  // elements between the beginnings of rows; a multiple of 16 bytes
  int box_columns = 0, box_rows = 0;
};

}  // namespace tutti
