// What the kernel is told. Host and device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "drivers/tensor_map.hpp"
#include "matmul/kernel/order.hpp"
#include "tutti/matmul.hpp"

namespace tutti {

struct OwnProductArguments {
  TensorMap b;
  void* c = nullptr;
  const void* bias = nullptr;  // null: none
  std::int64_t ldc = 0;        // elements, a multiple of 8
  int n = 0;
  int first_column = 0;  // of tiles: where this product begins among all
};

struct OwnMatmulArguments {
  TensorMap a;
  OwnProductArguments product[kMaxMatmulProducts];
  GroupedOrder order;
  int products = 0;
  int m = 0;
  int stages_of_k = 0;  // k / 64, rounded up
  int cluster = 1;      // blocks: 1 or 2
};

}  // namespace tutti
