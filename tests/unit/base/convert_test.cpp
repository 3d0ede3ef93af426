#include "base/convert.hpp"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "tutti/device/scalar.hpp"

namespace tutti {
namespace {

double through(DataType dtype, double value) {
  std::array<unsigned char, 9> bytes;
  bytes.fill(0xa5);
  store_element(dtype, bytes.data() + 1, value);  // on purpose not aligned
  for (std::size_t i = 1 + size_of(dtype); i < bytes.size(); ++i) EXPECT_EQ(bytes[i], 0xa5);
  return load_element(dtype, bytes.data() + 1);
}

TEST(Convert, SmallIntegersAreExactInEveryType) {
  for (const DataType dtype : kAllDataTypes) {
    for (int value = 0; value <= 8; ++value) EXPECT_EQ(through(dtype, value), value);
  }
}

TEST(Convert, IntegersTruncateAndStayInRange) {
  EXPECT_EQ(through(DataType::kInt8, -3.9), -3);
  EXPECT_EQ(through(DataType::kInt8, 1000), 127);
  EXPECT_EQ(through(DataType::kInt8, -1000), -128);
  EXPECT_EQ(through(DataType::kUint8, -0.5), 0);
  EXPECT_EQ(through(DataType::kUint8, 255.9), 255);
  EXPECT_EQ(through(DataType::kUint32, 1e20), 4294967295.0);
  EXPECT_EQ(through(DataType::kInt32, std::nan("")), 0);
  std::int64_t signed_value = 0;
  store_element(DataType::kInt64, &signed_value, 1e30);
  EXPECT_EQ(signed_value, INT64_MAX);
  store_element(DataType::kInt64, &signed_value, -0x1p63);
  EXPECT_EQ(signed_value, INT64_MIN);
  std::uint64_t unsigned_value = 0;
  store_element(DataType::kUint64, &unsigned_value, 0x1p64);
  EXPECT_EQ(unsigned_value, UINT64_MAX);
}

TEST(Convert, NumbersAreWordsInTheAccumulatorsType) {
  EXPECT_EQ(accumulator_bits(DataType::kFloat64, 0.1), std::bit_cast<std::uint64_t>(0.1));
  for (const DataType dtype : {DataType::kFloat32, DataType::kBfloat16, DataType::kFloat8E5M2}) {
    EXPECT_EQ(accumulator_bits(dtype, 0.1), std::bit_cast<std::uint32_t>(0.1F));
  }
  EXPECT_EQ(accumulator_bits(DataType::kInt8, 1000), 127U);
  EXPECT_EQ(accumulator_bits(DataType::kInt8, -1), 255U);
  EXPECT_EQ(accumulator_bits(DataType::kUint64, ~std::uint64_t{0}), ~std::uint64_t{0});
  EXPECT_EQ(accumulator_bits(DataType::kInt64, INT64_MIN), std::uint64_t{1} << 63);
}

TEST(Convert, ElementsOf64BitsAreExact) {
  for (const std::uint64_t value : {std::uint64_t{1} << 53 | 1, ~std::uint64_t{0}}) {
    std::uint64_t stored = 0;
    store_element(DataType::kUint64, &stored, value);
    EXPECT_EQ(stored, value);
    EXPECT_EQ(load_scalar(DataType::kUint64, &stored), Scalar(value));
    EXPECT_EQ(load_scalar(DataType::kInt64, &stored), Scalar(static_cast<std::int64_t>(value)));
  }
}

// 1 + 2^-11 is a tie between two halves; a bit far below it decides. Rounding to float first loses
// that bit and would take the even neighbour below.
TEST(Convert, NarrowTypesAreRoundedOnce) {
  const double tie = 1 + 0x1p-11;
  const double above = tie + 0x1p-40;
  EXPECT_EQ(to_float(from_float<Half>(static_cast<float>(above))), 1.0f);
  EXPECT_EQ(through(DataType::kFloat16, tie), 1);
  EXPECT_EQ(through(DataType::kFloat16, above), 1 + 0x1p-10);
  EXPECT_EQ(through(DataType::kFloat16, -above), -1 - 0x1p-10);
  EXPECT_EQ(through(DataType::kBfloat16, 1 + 0x1p-8 + 0x1p-40), 1 + 0x1p-7);
  EXPECT_EQ(through(DataType::kBfloat16, 1 + 3 * 0x1p-8 - 0x1p-40), 1 + 0x1p-7);
}

TEST(Convert, SpecialValues) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const DataType dtype : {DataType::kFloat64, DataType::kFloat32, DataType::kFloat16,
                               DataType::kBfloat16, DataType::kFloat8E5M2}) {
    EXPECT_EQ(through(dtype, -infinity), -infinity) << to_string(dtype);
    EXPECT_TRUE(std::isnan(through(dtype, std::nan("")))) << to_string(dtype);
    EXPECT_TRUE(std::signbit(through(dtype, -0.0))) << to_string(dtype);
  }
  EXPECT_EQ(through(DataType::kFloat8E4M3, infinity), 448);
  EXPECT_EQ(through(DataType::kFloat16, 1e300), infinity);
  EXPECT_EQ(through(DataType::kFloat8E5M2, 1e300), 57344);
  EXPECT_EQ(through(DataType::kFloat16, 1e-300), 0);
}

}  // namespace
}  // namespace tutti
