// Matrices of a matmul with random numbers, and the products that they should have.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "base/convert.hpp"
#include "tutti/matmul.hpp"

namespace tutti::test {

struct NumbersShape {
  std::size_t m = 0, n = 0, k = 0, gap = 0;  // behind each row or column
  DataType dtype = DataType::kFloat32;
  MatrixLayout layout = MatrixLayout::kRowMajor;
  bool bias = false;
  int products = 1;
  std::size_t step = 1;  // by which each further product is wider
};

// A matrix of any type, with values that the type has. Gaps are NaN.
class Matrix {
 public:
  Matrix(DataType dtype, std::size_t lines, std::size_t length, std::size_t gap)
      : dtype_(dtype), length_(length), distance_(length + gap) {
    bytes_.resize(lines * distance_ * size_of(dtype));
    for (std::size_t i = 0; i < lines * distance_; ++i) {
      store_element(dtype_, at(i), std::numeric_limits<double>::quiet_NaN());
    }
  }
  void fill(std::mt19937& random) {
    std::uniform_real_distribution<double> uniform(-1, 1);
    for (std::size_t i = 0; i < bytes_.size() / size_of(dtype_); ++i) {
      if (i % distance_ < length_) store_element(dtype_, at(i), uniform(random));
    }
  }
  void set(std::size_t line, std::size_t in_line, double value) {
    store_element(dtype_, at(line * distance_ + in_line), value);
  }
  double get(std::size_t line, std::size_t in_line) const {
    return load_element(dtype_, &bytes_[(line * distance_ + in_line) * size_of(dtype_)]);
  }
  void* data() { return bytes_.data(); }
  std::size_t distance() const { return distance_; }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  void* at(std::size_t index) { return &bytes_[index * size_of(dtype_)]; }

  DataType dtype_;
  std::size_t length_, distance_;
  std::vector<std::byte> bytes_;
};

class MatmulNumbers {
 public:
  explicit MatmulNumbers(const NumbersShape& shape)
      : shape_(shape), a_(shape.dtype, shape.m, shape.k, shape.gap) {
    std::mt19937 random(7);
    a_.fill(random);
    const bool rows = shape.layout == MatrixLayout::kRowMajor;
    for (int i = 0; i < shape.products; ++i) {
      const std::size_t n = columns(i);
      b_.emplace_back(shape.dtype, rows ? shape.k : n, rows ? n : shape.k, shape.gap);
      c_.emplace_back(shape.dtype, shape.m, n, shape.gap);
      bias_.emplace_back(shape.dtype, 1, n, 0);
      b_.back().fill(random);
      bias_.back().fill(random);
    }
  }

  Matrix& a() { return a_; }
  Matrix& b() { return b_.front(); }
  Matrix& bias() { return bias_.front(); }
  const Matrix& c() const { return c_.front(); }
  std::vector<Matrix>& all_c() { return c_; }

  // The call on memory that `address` gives each matrix. It holds until the next one.
  Matmul call(const std::function<void*(Matrix&)>& address = [](Matrix& m) { return m.data(); }) {
    products_.clear();
    for (std::size_t i = 0; i < b_.size(); ++i) {
      products_.push_back({.b = address(b_[i]),
                           .c = address(c_[i]),
                           .bias = shape_.bias ? address(bias_[i]) : nullptr,
                           .n = columns(static_cast<int>(i)),
                           .ldb = b_[i].distance(),
                           .ldc = c_[i].distance()});
    }
    const MatmulProduct& first = products_.front();
    return {.a = address(a_),
            .b = first.b,
            .c = first.c,
            .bias = first.bias,
            .m = shape_.m,
            .n = first.n,
            .k = shape_.k,
            .lda = a_.distance(),
            .ldb = first.ldb,
            .ldc = first.ldc,
            .dtype = shape_.dtype,
            .b_layout = shape_.layout,
            .more = std::span(products_).subspan(1)};
  }

  // Rows and columns at panels' ends, and some others, against sums in fp64. The error of fp32 sums
  // grows with sqrt(k); `slack` times what is usual is allowed. What is behind rows is untouched.
  void expect_right(std::string_view what, double slack = 1) const {
    for (int i = 0; i < shape_.products; ++i) {
      const std::size_t n = columns(i);
      for (const std::size_t row : some_of(shape_.m)) {
        for (const std::size_t column : some_of(n)) {
          const auto [want, bound] = expected(i, row, column, slack);
          EXPECT_NEAR(c_[static_cast<std::size_t>(i)].get(row, column), want, bound)
              << what << ", product " << i << ", row " << row << ", column " << column;
        }
        for (std::size_t column = n; column < n + shape_.gap; ++column) {
          EXPECT_TRUE(std::isnan(c_[static_cast<std::size_t>(i)].get(row, column))) << what;
        }
      }
    }
  }

 private:
  std::size_t columns(int product) const {
    return shape_.n + static_cast<std::size_t>(product) * shape_.step;
  }

  static std::vector<std::size_t> some_of(std::size_t count) {
    std::vector<std::size_t> some;
    for (const std::size_t at : {0, 1, 2, 17, 64, 511, 512, 1023, 1024}) {
      if (at < count) some.push_back(at);
    }
    some.push_back(count - 1);
    return some;
  }

  std::pair<double, double> expected(int product, std::size_t row, std::size_t column,
                                     double slack) const {
    const auto which = static_cast<std::size_t>(product);
    double want = shape_.bias ? bias_[which].get(0, column) : 0, squares = want * want;
    for (std::size_t k = 0; k < shape_.k; ++k) {
      const double b = shape_.layout == MatrixLayout::kRowMajor ? b_[which].get(k, column)
                                                                : b_[which].get(column, k);
      const double term = a_.get(row, k) * b;
      want += term;
      squares += term * term;
    }
    const int bits = shape_.dtype == DataType::kFloat32   ? 24
                     : shape_.dtype == DataType::kFloat16 ? 11
                                                          : 8;
    const double step = slack * 8 * std::ldexp(std::sqrt(static_cast<double>(shape_.k) + 1), -24);
    return {want, step * std::sqrt(squares) + std::ldexp(std::abs(want), -bits) +
                      std::ldexp(1, -25)};  // half of fp16's smallest subnormal
  }

  const NumbersShape shape_;
  Matrix a_;
  std::vector<Matrix> b_, c_, bias_;
  std::vector<MatmulProduct> products_;
};

// Rows of A and columns of B with one special value each, all else 1.
inline MatmulNumbers special_numbers(DataType dtype) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  MatmulNumbers numbers({.m = 4, .n = 8, .k = 8, .dtype = dtype});
  for (std::size_t k = 0; k < 8; ++k) {
    for (std::size_t row = 0; row < 4; ++row) numbers.a().set(row, k, 1);
    for (std::size_t column = 0; column < 8; ++column) numbers.b().set(k, column, 1);
  }
  numbers.a().set(0, 0, std::numeric_limits<double>::quiet_NaN());
  numbers.a().set(1, 0, kInfinity);
  numbers.a().set(2, 0, -kInfinity);
  numbers.b().set(0, 1, 0);
  numbers.b().set(1, 2, kInfinity);
  return numbers;
}

inline void expect_special(const Matrix& c) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (std::size_t column = 0; column < 8; ++column) EXPECT_TRUE(std::isnan(c.get(0, column)));
  EXPECT_EQ(c.get(1, 0), kInfinity);
  EXPECT_TRUE(std::isnan(c.get(1, 1)));  // infinity x 0
  EXPECT_EQ(c.get(1, 2), kInfinity);
  EXPECT_EQ(c.get(2, 0), -kInfinity);
  EXPECT_TRUE(std::isnan(c.get(2, 2)));  // -infinity + infinity
  EXPECT_EQ(c.get(3, 2), kInfinity);
  EXPECT_EQ(c.get(3, 3), 8);
}

}  // namespace tutti::test
