// One rank's side of an all_gather_matmul, with integers that every type has: sums are exact.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "tutti/tutti.hpp"
#include "unit/matmul/matmul_numbers.hpp"

namespace tutti::test {

// Of the shard and the gathered A.
enum class LayerBuffers : std::uint8_t { kPlain, kSymmetric, kInPlace };

struct Layer {
  std::size_t m = 6, k = 5;
  std::vector<std::size_t> n = {7};
  DataType dtype = DataType::kFloat32;
  MatrixLayout layout = MatrixLayout::kRowMajor;
  bool bias = false, gathered = false;
  LayerBuffers buffers = LayerBuffers::kPlain;
  std::string_view algorithm = {};
  AllGatherMatmulPipeline pipeline = {};

  std::size_t bytes_of_a() const { return m * k * size_of(dtype); }
  std::string text() const {
    return fmt::format("m {}, k {}, {} products, {}, {}, bias {}, gathered {}, buffers {}", m, k,
                       n.size(), to_string(dtype), to_string(layout), bias, gathered,
                       static_cast<int>(buffers));
  }
};

// From -2 to 2, without a period in which shards could be mistaken for each other.
inline int layer_number(std::size_t x, std::size_t y, int salt) {
  const std::uint64_t mixed =
      ((x * 1009 + y) * 1013 + static_cast<std::uint64_t>(salt)) * 0x9e3779b97f4a7c15u;
  return static_cast<int>((mixed >> 40) % 5) - 2;
}

// One rank's side of a layer. Every rank has a B of its own.
class LayerOfRank {
 public:
  // `symmetric`: for twice the A, each rounded up to kStep.
  static constexpr std::size_t kStep = 256;
  LayerOfRank(const Layer& layer, Communicator& group, std::byte* symmetric)
      : layer_(layer), rank_(group.rank()), ranks_(group.size()) {
    const bool rows = layer.layout == MatrixLayout::kRowMajor;
    for (const std::size_t n : layer.n) {
      b_.emplace_back(layer.dtype, rows ? layer.k : n, rows ? n : layer.k, 1);
      c_.emplace_back(layer.dtype, layer.m, n, 2);
      bias_.emplace_back(layer.dtype, 1, n, 0);
    }
    const std::size_t bytes = layer.bytes_of_a();
    if (layer.buffers == LayerBuffers::kPlain) own_.resize(2 * round_up(bytes, kStep));
    std::byte* const memory = layer.buffers == LayerBuffers::kPlain ? own_.data() : symmetric;
    target_ = memory;
    shard_ = layer.buffers == LayerBuffers::kInPlace ? memory + first_row() * row_bytes()
                                                     : memory + round_up(bytes, kStep);
  }

  // The gathered A is poisoned, and so is C.
  void fill(int salt) {
    salt_ = salt;
    std::memset(target_, 0xff, layer_.bytes_of_a());
    for (std::size_t row = first_row(); row < end_row(); ++row) {
      for (std::size_t k = 0; k < layer_.k; ++k) {
        std::byte* const to = shard_ + (row - first_row()) * row_bytes();
        store_element(layer_.dtype, to + k * size_of(layer_.dtype), layer_number(row, k, salt));
      }
    }
    for (std::size_t p = 0; p < layer_.n.size(); ++p) {
      c_[p] = Matrix(layer_.dtype, layer_.m, layer_.n[p], 2);
      for (std::size_t column = 0; column < layer_.n[p]; ++column) {
        bias_[p].set(0, column, layer_number(column, p, rank_));
        for (std::size_t k = 0; k < layer_.k; ++k) {
          const bool rows = layer_.layout == MatrixLayout::kRowMajor;
          b_[p].set(rows ? k : column, rows ? column : k, b(p, k, column));
        }
      }
    }
  }

  AllGatherMatmul call() {
    products_.clear();
    for (std::size_t p = 0; p < layer_.n.size(); ++p) {
      products_.push_back({.b = b_[p].data(),
                           .c = c_[p].data(),
                           .bias = layer_.bias ? bias_[p].data() : nullptr,
                           .n = layer_.n[p],
                           .ldb = b_[p].distance(),
                           .ldc = c_[p].distance()});
    }
    const MatmulProduct& first = products_.front();
    const bool gathered = layer_.gathered || layer_.buffers == LayerBuffers::kInPlace;
    return {.a = end_row() > first_row() ? shard_ : nullptr,
            .b = first.b,
            .c = first.c,
            .bias = first.bias,
            .m = layer_.m,
            .n = first.n,
            .k = layer_.k,
            .lda = layer_.gathered ? layer_.k : 0,
            .ldb = first.ldb,
            .ldc = first.ldc,
            .dtype = layer_.dtype,
            .b_layout = layer_.layout,
            .more = std::span(products_).subspan(1),
            .gathered = gathered ? target_ : nullptr,
            .workspace = gathered ? nullptr : target_,
            .workspace_bytes = gathered ? 0 : layer_.bytes_of_a(),
            .algorithm = layer_.algorithm,
            .pipeline = layer_.pipeline};
  }

  void expect_right(const std::string& what) const {
    for (std::size_t p = 0; p < layer_.n.size(); ++p) {
      std::size_t wrong = 0;
      for (std::size_t row = 0; row < layer_.m; ++row) {
        for (std::size_t column = 0; column < layer_.n[p]; ++column) {
          wrong += c_[p].get(row, column) == expected(p, row, column) ? 0 : 1;
        }
        wrong += std::isnan(c_[p].get(row, layer_.n[p])) ? 0 : 1;  // the gap behind
      }
      EXPECT_EQ(wrong, 0u) << what << ", product " << p << ", rank " << rank_;
    }
    // One rank alone copies A only to where it is asked for, and other algorithms have other
    // memory.
    const bool fills_workspace = layer_.algorithm.empty();
    const bool in_place = layer_.buffers == LayerBuffers::kInPlace;
    if (layer_.gathered || (ranks_ > 1 && (fills_workspace || in_place))) expect_gathered(what);
  }

 private:
  void expect_gathered(const std::string& what) const {
    std::size_t wrong = 0;
    for (std::size_t row = 0; row < layer_.m; ++row) {
      for (std::size_t k = 0; k < layer_.k; ++k) {
        const std::byte* const at = target_ + row * row_bytes() + k * size_of(layer_.dtype);
        wrong += load_element(layer_.dtype, at) == layer_number(row, k, salt_) ? 0 : 1;
      }
    }
    EXPECT_EQ(wrong, 0u) << what << ", the gathered A, rank " << rank_;
  }
  int b(std::size_t product, std::size_t k, std::size_t column) const {
    return layer_number(k + product, column, rank_ + 2 * salt_);
  }
  double expected(std::size_t product, std::size_t row, std::size_t column) const {
    int sum = layer_.bias ? layer_number(column, product, rank_) : 0;
    for (std::size_t k = 0; k < layer_.k; ++k)
      sum += layer_number(row, k, salt_) * b(product, k, column);
    return sum;
  }
  std::size_t row_bytes() const { return layer_.k * size_of(layer_.dtype); }
  std::size_t shard_rows() const { return ceil_div(layer_.m, static_cast<std::size_t>(ranks_)); }
  std::size_t first_row() const {
    return std::min(layer_.m, static_cast<std::size_t>(rank_) * shard_rows());
  }
  std::size_t end_row() const { return std::min(layer_.m, first_row() + shard_rows()); }

  const Layer layer_;
  const int rank_, ranks_;
  int salt_ = 0;
  std::vector<std::byte> own_;
  std::byte *target_ = nullptr, *shard_ = nullptr;
  std::vector<Matrix> b_, c_, bias_;
  std::vector<MatmulProduct> products_;
};

}  // namespace tutti::test
