#include "matmul/host.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "matmul_numbers.hpp"
#include "support/check.hpp"

namespace tutti {
namespace {

using test::MatmulNumbers;
using test::NumbersShape;
using test::take;

// C is a reference into `numbers`.
const test::Matrix& run_on_host(test::MatmulNumbers& numbers, const Blas* blas) {
  run_host_matmul(take(check(numbers.call())), blas);
  return numbers.c();
}

// The plain loop, and a BLAS if there is one.
std::vector<const Blas*> host_ways() {
  std::vector<const Blas*> ways = {nullptr};
  if (host_blas() != nullptr) ways.push_back(host_blas());
  return ways;
}

constexpr DataType kTypes[] = {DataType::kFloat32, DataType::kFloat16, DataType::kBfloat16};
constexpr MatrixLayout kBothLayouts[] = {MatrixLayout::kRowMajor, MatrixLayout::kColumnMajor};

TEST(HostMatmul, AgreesWithSumsInDouble) {
  const NumbersShape shapes[] = {{.m = 1, .n = 1, .k = 1},
                                 {.m = 3, .n = 5, .k = 7, .gap = 2, .bias = true},
                                 {.m = 17, .n = 33, .k = 65, .gap = 1, .products = 3},
                                 {.m = 65, .n = 1, .k = 1000, .bias = true},
                                 {.m = 1, .n = 129, .k = 3, .bias = true, .products = 2}};
  for (NumbersShape shape : shapes) {
    for (const DataType dtype : kTypes) {
      for (const MatrixLayout layout : kBothLayouts) {
        for (const Blas* blas : host_ways()) {
          shape.dtype = dtype;
          shape.layout = layout;
          MatmulNumbers numbers(shape);
          run_on_host(numbers, blas);
          numbers.expect_right(fmt::format("{}x{}x{} {} {}-major {}", shape.m, shape.n, shape.k,
                                           to_string(dtype), to_string(layout),
                                           blas == nullptr ? "plain" : blas->name()));
        }
      }
    }
  }
}

// A panel has 512 rows, 1024 columns and 512 elements of K.
TEST(HostMatmul, IsMadeOfPanels) {
  constexpr DataType kNarrow = DataType::kBfloat16;
  const NumbersShape shapes[] = {{.m = 515, .n = 1029, .k = 3, .dtype = kNarrow, .bias = true},
                                 {.m = 3, .n = 1029, .k = 1030, .dtype = kNarrow, .bias = true},
                                 {.m = 515, .n = 3, .k = 1030, .dtype = kNarrow, .bias = true}};
  for (NumbersShape shape : shapes) {
    for (const Blas* blas : host_ways()) {
      shape.layout = blas == nullptr ? MatrixLayout::kRowMajor : MatrixLayout::kColumnMajor;
      MatmulNumbers numbers(shape);
      run_on_host(numbers, blas);
      numbers.expect_right(blas == nullptr ? "plain" : blas->name());
    }
  }
}

TEST(HostMatmul, WithoutKItIsTheBiasOrZero) {
  for (const DataType dtype : kTypes) {
    MatmulNumbers zero({.m = 2, .n = 3, .k = 0, .dtype = dtype});
    run_on_host(zero, nullptr);
    MatmulNumbers bias({.m = 2, .n = 3, .k = 0, .dtype = dtype, .bias = true});
    run_on_host(bias, host_blas());
    for (std::size_t row = 0; row < 2; ++row) {
      for (std::size_t column = 0; column < 3; ++column) {
        EXPECT_EQ(zero.c().get(row, column), 0.0);
        EXPECT_EQ(bias.c().get(row, column), bias.bias().get(0, column));
      }
    }
  }
}

TEST(HostMatmul, NanInfinityAndSubnormalsAreAsInIeee) {
  for (const DataType dtype : kTypes) {
    for (const Blas* blas : host_ways()) {
      MatmulNumbers problem = test::special_numbers(dtype);
      test::expect_special(run_on_host(problem, blas));
    }
  }
}

TEST(HostMatmul, KeepsSubnormals) {
  const std::pair<DataType, double> smallest[] = {{DataType::kFloat32, std::ldexp(1, -149)},
                                                  {DataType::kFloat16, std::ldexp(1, -24)},
                                                  {DataType::kBfloat16, std::ldexp(1, -133)}};
  for (const auto& [dtype, value] : smallest) {
    for (const Blas* blas : host_ways()) {
      MatmulNumbers problem({.m = 1, .n = 1, .k = 3, .dtype = dtype});
      for (std::size_t k = 0; k < 3; ++k) {
        problem.a().set(0, k, value);
        problem.b().set(k, 0, 1);
      }
      EXPECT_EQ(run_on_host(problem, blas).get(0, 0), 3 * value) << to_string(dtype);
    }
  }
}

TEST(HostMatmul, RoundsOnceAfterTheBias) {
  // 1 + 2^-8 is half way between two neighbours of bf16, and the bias decides.
  MatmulNumbers problem({.m = 1, .n = 1, .k = 2, .dtype = DataType::kBfloat16, .bias = true});
  problem.a().set(0, 0, 1);
  problem.a().set(0, 1, std::ldexp(1, -8));
  problem.b().set(0, 0, 1);
  problem.b().set(1, 0, 1);
  problem.bias().set(0, 0, std::ldexp(1, -16));
  EXPECT_EQ(run_on_host(problem, nullptr).get(0, 0), 1 + std::ldexp(1, -7));
}

TEST(HostMatmul, ThePlainLoopAddsInTheOrderOfK) {
  constexpr std::size_t kDepth = 1100;  // of several panels
  MatmulNumbers problem({.m = 2, .n = 3, .k = kDepth});
  run_on_host(problem, nullptr);
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
  MatmulNumbers columns({.m = 2, .n = 3, .k = kDepth, .layout = MatrixLayout::kColumnMajor});
  for (std::size_t k = 0; k < kDepth; ++k) {
    for (std::size_t column = 0; column < 3; ++column) {
      columns.b().set(column, k, problem.b().get(k, column));
    }
  }
  EXPECT_EQ(run_on_host(columns, nullptr).bytes(), problem.c().bytes());
}

}  // namespace
}  // namespace tutti
