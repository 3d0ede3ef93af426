// Problems of own_matmul, and its tiles by name.
#pragma once

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "matmul/problem.hpp"
#include "matmul/tiles.hpp"

namespace tutti::test {

// bf16, without gaps; several values of `n` are several products.
inline MatmulProblem problem_of(std::size_t m, const std::vector<std::size_t>& n, std::size_t k) {
  MatmulProblem problem{.m = m, .k = k, .lda = k};
  for (const std::size_t columns : n) {
    problem.product[static_cast<std::size_t>(problem.products++)] = {
        .n = columns, .ldb = columns, .ldc = columns};
  }
  return problem;
}

inline const MatmulTile& tile_named(std::string_view name) {
  for (const MatmulTile& tile : kMatmulTiles) {
    if (tile.name == name) return tile;
  }
  ADD_FAILURE() << name;
  return kMatmulTiles.front();
}

}  // namespace tutti::test
