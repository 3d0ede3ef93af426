#include "matmul/host.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "base/convert.hpp"
#include "support/check.hpp"
#include "tutti/device/scalar.hpp"

namespace tutti {
namespace {

using test::take;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct HostShape {
  std::size_t m = 0, n = 0, k = 0, gap = 0;  // behind each row or column
  DataType dtype = DataType::kFloat32;
  MatrixLayout layout = MatrixLayout::kRowMajor;
  bool bias = false;
  int products = 1;  // B is wider by one in each further one
};

// A matrix of any type, with values that the type has. Gaps are NaN.
class HostMatrix {
 public:
  HostMatrix(DataType dtype, std::size_t lines, std::size_t length, std::size_t gap)
      : dtype_(dtype), length_(length), distance_(length + gap) {
    bytes_.resize(lines * distance_ * size_of(dtype));
    for (std::size_t i = 0; i < lines * distance_; ++i) {
      store_element(dtype_, at(i), static_cast<double>(kNan));
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

class HostProblem {
 public:
  explicit HostProblem(const HostShape& shape)
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

  HostMatrix& a() { return a_; }
  HostMatrix& b() { return b_.front(); }
  HostMatrix& bias() { return bias_.front(); }
  const HostMatrix& c() const { return c_.front(); }

  HostProblem& run(const Blas* blas) {
    std::vector<MatmulProduct> products;
    for (std::size_t i = 0; i < b_.size(); ++i) {
      products.push_back({.b = b_[i].data(),
                          .c = c_[i].data(),
                          .bias = shape_.bias ? bias_[i].data() : nullptr,
                          .n = columns(static_cast<int>(i)),
                          .ldb = b_[i].distance(),
                          .ldc = c_[i].distance()});
    }
    const MatmulProduct& first = products.front();
    const Matmul call = {.a = a_.data(),
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
                         .more = std::span(products).subspan(1)};
    run_host_matmul(take(check(call)), blas);
    return *this;
  }

  // Rows and columns at panels' ends, and some others, against sums in fp64. The error of fp32 sums
  // grows with sqrt(k).
  void expect_right(std::string_view what) const {
    for (int i = 0; i < shape_.products; ++i) {
      for (const std::size_t row : some_of(shape_.m)) {
        for (const std::size_t column : some_of(columns(i))) expect_right(what, i, row, column);
      }
    }
  }

 private:
  std::size_t columns(int product) const { return shape_.n + static_cast<std::size_t>(product); }

  static std::vector<std::size_t> some_of(std::size_t count) {
    std::vector<std::size_t> some;
    for (const std::size_t at : {0, 1, 2, 17, 64, 511, 512, 1023, 1024}) {
      if (at < count) some.push_back(at);
    }
    some.push_back(count - 1);
    return some;
  }

  void expect_right(std::string_view what, int product, std::size_t row, std::size_t column) const {
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
    const double sums = 8 * std::ldexp(std::sqrt(static_cast<double>(shape_.k) + 1), -24);
    const double bound = sums * std::sqrt(squares) + std::ldexp(std::abs(want), -bits) +
                         std::ldexp(1, -25);  // half of fp16's smallest subnormal
    EXPECT_NEAR(c_[which].get(row, column), want, bound)
        << what << ", product " << product << ", row " << row << ", column " << column;
  }

  const HostShape shape_;
  HostMatrix a_;
  std::vector<HostMatrix> b_, c_, bias_;
};

// The plain loop, and a BLAS if there is one.
std::vector<const Blas*> host_ways() {
  std::vector<const Blas*> ways = {nullptr};
  if (host_blas() != nullptr) ways.push_back(host_blas());
  return ways;
}

constexpr DataType kTypes[] = {DataType::kFloat32, DataType::kFloat16, DataType::kBfloat16};
constexpr MatrixLayout kBothLayouts[] = {MatrixLayout::kRowMajor, MatrixLayout::kColumnMajor};

TEST(HostMatmul, AgreesWithSumsInDouble) {
  const HostShape shapes[] = {{.m = 1, .n = 1, .k = 1},
                              {.m = 3, .n = 5, .k = 7, .gap = 2, .bias = true},
                              {.m = 17, .n = 33, .k = 65, .gap = 1, .products = 3},
                              {.m = 65, .n = 1, .k = 1000, .bias = true},
                              {.m = 1, .n = 129, .k = 3, .bias = true, .products = 2}};
  for (HostShape shape : shapes) {
    for (const DataType dtype : kTypes) {
      for (const MatrixLayout layout : kBothLayouts) {
        for (const Blas* blas : host_ways()) {
          shape.dtype = dtype;
          shape.layout = layout;
          HostProblem(shape).run(blas).expect_right(
              fmt::format("{}x{}x{} {} {}-major {}", shape.m, shape.n, shape.k, to_string(dtype),
                          to_string(layout), blas == nullptr ? "plain" : blas->name()));
        }
      }
    }
  }
}

TEST(HostMatmul, IsMadeOfPanels) {
  for (const Blas* blas : host_ways()) {
    HostProblem({.m = 515, .n = 1029, .k = 517, .dtype = DataType::kBfloat16, .bias = true})
        .run(blas)
        .expect_right(blas == nullptr ? "plain" : blas->name());
  }
}

TEST(HostMatmul, WithoutKItIsTheBiasOrZero) {
  for (const DataType dtype : kTypes) {
    HostProblem zero({.m = 2, .n = 3, .k = 0, .dtype = dtype});
    zero.run(nullptr);
    HostProblem bias({.m = 2, .n = 3, .k = 0, .dtype = dtype, .bias = true});
    bias.run(host_blas());
    for (std::size_t row = 0; row < 2; ++row) {
      for (std::size_t column = 0; column < 3; ++column) {
        EXPECT_EQ(zero.c().get(row, column), 0.0);
        EXPECT_EQ(bias.c().get(row, column), bias.bias().get(0, column));
      }
    }
  }
}

// A row and a column with one special value each, all else 1.
TEST(HostMatmul, NanInfinityAndSubnormalsAreAsInIeee) {
  for (const DataType dtype : kTypes) {
    for (const Blas* blas : host_ways()) {
      HostProblem problem({.m = 4, .n = 4, .k = 2, .dtype = dtype});
      for (std::size_t i = 0; i < 4; ++i) {
        for (std::size_t k = 0; k < 2; ++k) {
          problem.a().set(i, k, 1);
          problem.b().set(k, i, 1);
        }
      }
      problem.a().set(0, 0, kNan);
      problem.a().set(1, 0, kInfinity);
      problem.a().set(2, 0, -kInfinity);
      problem.b().set(0, 1, 0);
      problem.b().set(1, 2, kInfinity);
      const HostMatrix& c = problem.run(blas).c();
      for (std::size_t column = 0; column < 4; ++column) EXPECT_TRUE(std::isnan(c.get(0, column)));
      EXPECT_EQ(c.get(1, 0), kInfinity);
      EXPECT_TRUE(std::isnan(c.get(1, 1)));  // infinity x 0
      EXPECT_EQ(c.get(1, 2), kInfinity);
      EXPECT_EQ(c.get(2, 0), -kInfinity);
      EXPECT_TRUE(std::isnan(c.get(2, 2)));  // -infinity + infinity
      EXPECT_EQ(c.get(3, 2), kInfinity);
      EXPECT_EQ(c.get(3, 3), 2);
    }
  }
}

TEST(HostMatmul, KeepsSubnormals) {
  const std::pair<DataType, double> smallest[] = {{DataType::kFloat32, std::ldexp(1, -149)},
                                                  {DataType::kFloat16, std::ldexp(1, -24)},
                                                  {DataType::kBfloat16, std::ldexp(1, -133)}};
  for (const auto& [dtype, value] : smallest) {
    for (const Blas* blas : host_ways()) {
      HostProblem problem({.m = 1, .n = 1, .k = 3, .dtype = dtype});
      for (std::size_t k = 0; k < 3; ++k) {
        problem.a().set(0, k, value);
        problem.b().set(k, 0, 1);
      }
      EXPECT_EQ(problem.run(blas).c().get(0, 0), 3 * value) << to_string(dtype);
    }
  }
}

TEST(HostMatmul, RoundsOnceAfterTheBias) {
  // 1 + 2^-8 is half way between two neighbours of bf16, and the bias decides.
  HostProblem problem({.m = 1, .n = 1, .k = 2, .dtype = DataType::kBfloat16, .bias = true});
  problem.a().set(0, 0, 1);
  problem.a().set(0, 1, std::ldexp(1, -8));
  problem.b().set(0, 0, 1);
  problem.b().set(1, 0, 1);
  problem.bias().set(0, 0, std::ldexp(1, -16));
  EXPECT_EQ(problem.run(nullptr).c().get(0, 0), 1 + std::ldexp(1, -7));
}

TEST(HostMatmul, ThePlainLoopAddsInTheOrderOfK) {
  constexpr std::size_t kDepth = 1100;  // of several panels
  HostProblem problem({.m = 2, .n = 3, .k = kDepth});
  problem.run(nullptr);
  for (std::size_t row = 0; row < 2; ++row) {
    for (std::size_t column = 0; column < 3; ++column) {
      float want = 0;
      for (std::size_t k = 0; k < kDepth; ++k) {
        want += static_cast<float>(problem.a().get(row, k)) *
                static_cast<float>(problem.b().get(k, column));
      }
      EXPECT_EQ(problem.c().get(row, column), want);
    }
  }
  HostProblem columns({.m = 2, .n = 3, .k = kDepth, .layout = MatrixLayout::kColumnMajor});
  for (std::size_t k = 0; k < kDepth; ++k) {
    for (std::size_t column = 0; column < 3; ++column) {
      columns.b().set(column, k, problem.b().get(k, column));
    }
  }
  EXPECT_EQ(columns.run(nullptr).c().bytes(), problem.c().bytes());
}

}  // namespace
}  // namespace tutti
