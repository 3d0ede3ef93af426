// What the kernel is told. Host and device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "drivers/tensor_map.hpp"
#include "matmul/kernel/order.hpp"
#include "tutti/matmul.hpp"

namespace tutti {

// Arrays of two have a value for wide and for narrow tiles.
struct OwnProductArguments {
  TensorMap b[2];
  void* c = nullptr;
  const void* bias = nullptr;  // null: none
  std::int64_t ldc = 0;        // elements, a multiple of 8
  int n = 0;
  int first_column[2] = {};  // of tiles: where this product begins among all
};

struct OwnMatmulArguments {
  TensorMap a;
  OwnProductArguments product[kMaxMatmulProducts];
  TwoWidthsOrder order;
  int columns[2] = {};  // of a tile
  int products = 0;
  int m = 0;
  int stages_of_k = 0;  // k / 64, rounded up
  int cluster = 1;      // blocks: 1 or 2
  int stages = 0;       // of the ring
  std::uint32_t stage_bytes = 0;
};

}  // namespace tutti
