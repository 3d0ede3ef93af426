#include "tutti/types.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST(Backends, NamesComeBack) {
  for (const Backend backend : {Backend::kAuto, Backend::kHost, Backend::kCuda}) {
    EXPECT_EQ(*parse_backend(to_string(backend)), backend);
  }
  EXPECT_THAT(parse_backend("gpu").status().message(), HasSubstr("auto, host, cuda"));
}

}  // namespace
}  // namespace tutti
