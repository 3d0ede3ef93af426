// Which matmuls are measured: lists that multiply out, and presets.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "tutti/status.hpp"

namespace tutti::cli {

struct MatmulExtents {
  std::size_t m = 0, n = 0, k = 0;
  friend bool operator==(const MatmulExtents&, const MatmulExtents&) = default;
};

// Lists as typed; empty: not given.
struct MatmulShapeTexts {
  std::string_view m, n, k;
  std::string_view weights;  // instead of n and k: "1792x4096,3584x8192"
  std::string_view preset;   // instead of all these; m replaces its own
};

inline constexpr int kMostExtent = 1 << 20;  // no product of sizes overflows

// Each once. `otherwise`: where an extent is not given. Invalid texts are kInvalidArgument.
Result<std::vector<MatmulExtents>> read_matmul_shapes(const MatmulShapeTexts& texts, int otherwise);

}  // namespace tutti::cli
