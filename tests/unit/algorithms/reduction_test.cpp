// How two elements become one, at the edges.
#include "algorithms/reduction.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace tutti {
namespace {

TEST(ReductionTest, IntegersWrap) {
  EXPECT_EQ(wrapping_add<std::int8_t>(127, 1), -128);
  EXPECT_EQ(wrapping_add<std::int32_t>(std::numeric_limits<std::int32_t>::max(), 1),
            std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(wrapping_multiply<std::int8_t>(-128, -1), -128);
  EXPECT_EQ(wrapping_multiply<std::uint8_t>(16, 17), 16);
  EXPECT_EQ(wrapping_multiply<std::int64_t>(std::int64_t{1} << 62, 2),
            std::numeric_limits<std::int64_t>::min());
}

template <class T>
void expect_orders_zeros_and_keeps_nan() {
  const T nan = std::numeric_limits<T>::quiet_NaN();
  for (const T value : {T{1}, T{-1}, T{0}, std::numeric_limits<T>::infinity()}) {
    EXPECT_TRUE(std::isnan(minimum(value, nan)));
    EXPECT_TRUE(std::isnan(minimum(nan, value)));
    EXPECT_TRUE(std::isnan(maximum(value, nan)));
    EXPECT_TRUE(std::isnan(maximum(nan, value)));
  }
  for (const auto& [a, b] : {std::pair{T{0}, -T{0}}, std::pair{-T{0}, T{0}}}) {
    EXPECT_TRUE(std::signbit(minimum(a, b)));
    EXPECT_FALSE(std::signbit(maximum(a, b)));
  }
  EXPECT_EQ(minimum(T{-2}, T{3}), T{-2});
  EXPECT_EQ(maximum(T{-2}, T{3}), T{3});
}

TEST(ReductionTest, FloatsOrderZerosAndKeepNan) {
  expect_orders_zeros_and_keeps_nan<float>();
  expect_orders_zeros_and_keeps_nan<double>();
}

TEST(ReductionTest, MinimumIsOfTheElementsOwnSign) {
  EXPECT_EQ(minimum<std::int8_t>(-1, 1), -1);
  EXPECT_EQ(minimum<std::uint8_t>(255, 1), 1);
  EXPECT_EQ(maximum<std::int64_t>(-1, 1), 1);
  EXPECT_EQ(maximum<std::uint64_t>(~std::uint64_t{0}, 1), ~std::uint64_t{0});
}

}  // namespace
}  // namespace tutti
