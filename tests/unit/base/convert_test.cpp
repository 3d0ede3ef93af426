#include "base/convert.hpp"

#include <gtest/gtest.h>

#include <array>
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

TEST(Convert, OfIntegersTheRangeIsKept) {
  EXPECT_EQ(within_range(DataType::kInt8, 1000), 127);
  EXPECT_EQ(within_range(DataType::kInt8, -1e300), -128);
  EXPECT_EQ(within_range(DataType::kInt8, 2.5), 2.5);
  EXPECT_EQ(within_range(DataType::kUint32, 1e20), 4294967295.0);
  EXPECT_EQ(within_range(DataType::kInt32, std::nan("")), 0);
  EXPECT_EQ(static_cast<std::int64_t>(within_range(DataType::kInt64, 1e30)), INT64_MAX - 1023);
  EXPECT_EQ(static_cast<std::int64_t>(within_range(DataType::kInt64, -1e30)), INT64_MIN);
  EXPECT_EQ(static_cast<std::uint64_t>(within_range(DataType::kUint64, 1e30)), UINT64_MAX - 2047);
  EXPECT_EQ(within_range(DataType::kFloat32, 1e300), 1e300);
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
