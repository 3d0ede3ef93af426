#include "tutti/types.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "tutti/device/scalar.hpp"

namespace tutti {
namespace {

using testing::HasSubstr;

TEST(DataTypes, NamesComeBack) {
  for (const DataType dtype : kAllDataTypes) {
    const auto parsed = parse_data_type(to_string(dtype));
    ASSERT_TRUE(parsed.is_ok()) << to_string(dtype);
    EXPECT_EQ(*parsed, dtype);
  }
}

TEST(DataTypes, OtherWordsForThem) {
  EXPECT_EQ(*parse_data_type("bfloat16"), DataType::kBfloat16);
  EXPECT_EQ(*parse_data_type("half"), DataType::kFloat16);
  EXPECT_EQ(*parse_data_type("float"), DataType::kFloat32);
  EXPECT_EQ(*parse_data_type("double"), DataType::kFloat64);
}

TEST(DataTypes, AnUnknownNameListsTheKnownOnes) {
  const auto parsed = parse_data_type("fp7");
  ASSERT_FALSE(parsed.is_ok());
  EXPECT_EQ(parsed.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(parsed.status().message(), HasSubstr("'fp7'"));
  for (const DataType dtype : kAllDataTypes) {
    EXPECT_THAT(parsed.status().message(), HasSubstr(std::string(to_string(dtype))));
  }
}

TEST(DataTypes, SizesAndKinds) {
  std::size_t total = 0;
  int floating = 0;
  for (const DataType dtype : kAllDataTypes) {
    total += size_of(dtype);
    floating += is_floating(dtype) ? 1 : 0;
  }
  EXPECT_EQ(total, 8u + 4 + 2 + 2 + 1 + 1 + 1 + 1 + 4 + 4 + 8 + 8);
  EXPECT_EQ(floating, 6);
  EXPECT_TRUE(is_floating(DataType::kFloat8E5M2));
  EXPECT_FALSE(is_floating(DataType::kInt8));
}

TEST(DataTypes, VisitingGivesTheElementType) {
  for (const DataType dtype : kAllDataTypes) {
    visit_data_type(dtype, [&]<class T>() {
      EXPECT_EQ(ElementTraits<T>::kDataType, dtype);
      const bool narrow_float = is_floating(dtype) && sizeof(T) < 4;
      EXPECT_EQ((std::is_same_v<AccumulatorOf<T>, T>), !narrow_float);
      EXPECT_TRUE((!narrow_float || std::is_same_v<AccumulatorOf<T>, float>));
    });
  }
}

TEST(Ops, NamesComeBack) {
  for (const OpKind op : kAllOps) EXPECT_EQ(*parse_op(to_string(op)), op);
  EXPECT_THAT(parse_op("xor").status().message(), HasSubstr("premulsum"));
}

// Of every type, and beyond what a double holds.
TEST(Scalars, KeepEveryInteger) {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  static_assert(Scalar(std::int64_t{1} << 62 | 1).to<std::int64_t>() ==
                (std::int64_t{1} << 62 | 1));
  static_assert(Scalar(kLeast + 1).to<std::int64_t>() == kLeast + 1);
  static_assert(Scalar(kMost).to<std::uint64_t>() == kMost);
  static_assert(Scalar(std::int8_t{-1}).to<std::int64_t>() == -1);
  static_assert(Scalar('a').to<int>() == 'a');
  static_assert(Scalar(0.1F).to<float>() == 0.1F && Scalar(0.1).to<double>() == 0.1);
  static_assert(Scalar().to<double>() == 0 && ReduceOp{}.scalar == 1);
}

TEST(Scalars, ConvertToTheNearestThatATypeHolds) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(Scalar(-1).to<std::uint64_t>(), 0U);
  EXPECT_EQ(Scalar(300).to<std::int8_t>(), 127);
  EXPECT_EQ(Scalar(-300).to<std::int8_t>(), -128);
  EXPECT_EQ(Scalar(~std::uint64_t{0}).to<std::int64_t>(), INT64_MAX);
  EXPECT_EQ(Scalar(-2.9).to<std::int32_t>(), -2);
  EXPECT_EQ(Scalar(infinity).to<std::int64_t>(), INT64_MAX);
  EXPECT_EQ(Scalar(0x1p64).to<std::uint64_t>(), UINT64_MAX);
  EXPECT_EQ(Scalar(-infinity).to<std::int64_t>(), INT64_MIN);
  EXPECT_EQ(Scalar(std::nan("")).to<std::int16_t>(), 0);
  EXPECT_EQ(Scalar((1 << 24) + 1).to<float>(), 0x1p24F);
  EXPECT_EQ(Scalar(1e300).to<float>(), std::numeric_limits<float>::infinity());
}

TEST(Scalars, AreEqualAsNumbers) {
  EXPECT_EQ(Scalar(2), Scalar(2.0F));
  EXPECT_EQ(Scalar(-2), Scalar(-2.0));
  EXPECT_EQ(Scalar(std::uint8_t{7}), Scalar(std::int64_t{7}));
  EXPECT_EQ(Scalar(INT64_MIN), Scalar(-0x1p63));
  EXPECT_NE(Scalar(~std::uint64_t{0}), Scalar(0x1p64));
  EXPECT_NE(Scalar(~std::uint64_t{0}), Scalar(-1));
  EXPECT_NE(Scalar(std::int64_t{1} << 53 | 1), Scalar(0x1p53));
  EXPECT_NE(Scalar(0.5), Scalar(0));
  EXPECT_NE(Scalar(std::nan("")), Scalar(0));
  EXPECT_EQ(ReduceOp::pre_mul_sum(2), ReduceOp::pre_mul_sum(2.0));
  EXPECT_NE(ReduceOp::pre_mul_sum(1), ReduceOp::pre_mul_sum_at("x"));
}

TEST(Backends, NamesComeBack) {
  for (const Backend backend : {Backend::kAuto, Backend::kHost, Backend::kCuda}) {
    EXPECT_EQ(*parse_backend(to_string(backend)), backend);
  }
  EXPECT_THAT(parse_backend("gpu").status().message(), HasSubstr("auto, host, cuda"));
}

}  // namespace
}  // namespace tutti
