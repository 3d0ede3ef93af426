#include "matmul/problem.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "support/check.hpp"

namespace tutti {
namespace {

using test::take;
using testing::StartsWith;

alignas(256) std::byte memory[4096];

// [3, 4] x [4, 5] -> [3, 5], with a bias. Nothing is read.
Matmul good_matmul() {
  return {.a = memory,
          .b = memory + 256,
          .c = memory + 512,
          .bias = memory + 768,
          .m = 3,
          .n = 5,
          .k = 4};
}

MatmulProduct good_product() {
  return {.b = memory + 1024, .c = memory + 1280, .bias = nullptr, .n = 6};
}

struct BadMatmul {
  std::string text;
  std::function<void(Matmul&)> spoil;
  StatusCode code = StatusCode::kInvalidArgument;
};

TEST(MatmulCheck, NamesWhatIsWrong) {
  constexpr std::size_t kHuge = std::size_t{1} << 60;
  const std::vector<BadMatmul> all = {
      {"null a", [](Matmul& call) { call.a = nullptr; }},
      {"null b", [](Matmul& call) { call.b = nullptr; }},
      {"null c", [](Matmul& call) { call.c = nullptr; }},
      {"a is not aligned to its elements' 2 bytes", [](Matmul& call) { call.a = memory + 1; }},
      {"b is not aligned to its elements' 2 bytes", [](Matmul& call) { call.b = memory + 1; }},
      {"c is not aligned to its elements' 2 bytes", [](Matmul& call) { call.c = memory + 1; }},
      {"bias is not aligned to its elements' 2 bytes",
       [](Matmul& call) { call.bias = memory + 1; }},
      {"a is not aligned to its elements' 4 bytes",
       [](Matmul& call) {
         call.a = memory + 2;
         call.dtype = DataType::kFloat32;
       }},
      {"lda 3 is less than the 4 elements that follow each other",
       [](Matmul& call) { call.lda = 3; }},
      {"ldb 4 is less than the 5 elements that follow each other",
       [](Matmul& call) { call.ldb = 4; }},
      {"ldb 3 is less than the 4 elements that follow each other",
       [](Matmul& call) {
         call.ldb = 3;
         call.b_layout = MatrixLayout::kColumnMajor;
       }},
      {"ldc 4 is less than the 5 elements that follow each other",
       [](Matmul& call) { call.ldc = 4; }},
      {"the size of a overflows", [](Matmul& call) { call.lda = kHuge; }},
      {"the size of b overflows", [](Matmul& call) { call.n = kHuge; }},
      {"the size of c overflows", [](Matmul& call) { call.ldc = kHuge; }},
      {"unknown dtype", [](Matmul& call) { call.dtype = static_cast<DataType>(99); }},
      {"unknown layout of B", [](Matmul& call) { call.b_layout = static_cast<MatrixLayout>(2); }},
      {"unknown backend", [](Matmul& call) { call.backend = static_cast<Backend>(3); }},
      {"of bf16, fp16 or fp32, not int32", [](Matmul& call) { call.dtype = DataType::kInt32; },
       StatusCode::kUnsupported},
      {"of bf16, fp16 or fp32, not fp8_e4m3",
       [](Matmul& call) { call.dtype = DataType::kFloat8E4M3; }, StatusCode::kUnsupported},
  };
  for (const BadMatmul& bad : all) {
    Matmul call = good_matmul();
    ASSERT_TRUE(check(call).is_ok());
    bad.spoil(call);
    const Status status = check(call).status();
    EXPECT_EQ(status.message(), "matmul: " + bad.text);
    EXPECT_EQ(status.code(), bad.code) << bad.text;
  }
}

TEST(MatmulCheck, NamesTheProductThatIsWrong) {
  std::vector<MatmulProduct> more(2, good_product());
  Matmul call = good_matmul();
  call.more = more;
  ASSERT_TRUE(check(call).is_ok());
  more[1].ldc = 5;
  EXPECT_EQ(check(call).status().message(),
            "matmul: more[1].ldc 5 is less than the 6 elements that follow each other");
  more[1].ldc = 0;
  more[0].b = nullptr;
  EXPECT_EQ(check(call).status().message(), "matmul: null more[0].b");
  more.assign(kMaxMatmulProducts - 1, good_product());
  call.more = more;
  EXPECT_TRUE(check(call).is_ok());
  more.push_back(good_product());
  call.more = more;
  EXPECT_EQ(check(call).status().message(), "matmul: 9 products: at most 8");
}

TEST(MatmulCheck, FillsInDistances) {
  Matmul call = good_matmul();
  const CheckedMatmul rows = take(check(call));
  EXPECT_EQ(rows.problem.lda, 4U);
  EXPECT_EQ(rows.problem.product[0], (ProductShape{.n = 5, .ldb = 5, .ldc = 5, .bias = true}));
  call.b_layout = MatrixLayout::kColumnMajor;
  call.lda = 7;
  call.ldc = 6;
  call.bias = nullptr;
  const CheckedMatmul columns = take(check(call));
  EXPECT_EQ(columns.problem.lda, 7U);
  EXPECT_EQ(columns.problem.product[0], (ProductShape{.n = 5, .ldb = 4, .ldc = 6}));
}

TEST(MatmulCheck, LeavesOutProductsWithoutElements) {
  std::vector<MatmulProduct> more(2, good_product());
  more[0] = {};  // n = 0: its pointers may be null
  Matmul call = good_matmul();
  call.more = more;
  const CheckedMatmul checked = take(check(call));
  EXPECT_EQ(checked.problem.products, 2);
  EXPECT_EQ(checked.problem.columns(), 5U + 6U);
  EXPECT_EQ(checked.product[1].b, more[1].b);
  call = {.m = 0, .n = 5, .k = 4};
  EXPECT_EQ(take(check(call)).problem.products, 0);
  call = {.m = 3, .n = 0, .k = 4};
  EXPECT_EQ(take(check(call)).problem.products, 0);
}

TEST(MatmulCheck, WithoutKNeitherFactorIsRead) {
  const CheckedMatmul checked = take(check({.c = memory, .m = 3, .n = 5, .k = 0}));
  EXPECT_EQ(checked.problem.products, 1);
  EXPECT_EQ(check({.m = 3, .n = 5, .k = 0}).status().message(), "matmul: null c");
}

TEST(MatmulCheck, KnowsTheAlignmentOfAddressesAndDistances) {
  const auto alignment = [](const Matmul& call) { return take(check(call)).problem.alignment; };
  Matmul call = good_matmul();
  call.n = 128;
  call.k = 64;
  EXPECT_EQ(alignment(call), 128U);  // lda
  call.lda = call.ldb = call.ldc = 1024;
  EXPECT_EQ(alignment(call), 256U);
  call.c = memory + 32;
  EXPECT_EQ(alignment(call), 32U);
  call.lda = 1025;
  EXPECT_EQ(alignment(call), 2U);
  call.bias = memory + 8;
  EXPECT_EQ(take(check(call)).problem.bias_alignment, 8U);
  call.bias = nullptr;
  EXPECT_EQ(take(check(call)).problem.bias_alignment, 256U);
}

TEST(MatmulCheck, LayoutsHaveNames) {
  for (const MatrixLayout layout : {MatrixLayout::kRowMajor, MatrixLayout::kColumnMajor}) {
    EXPECT_EQ(take(parse_matrix_layout(to_string(layout))), layout);
  }
  EXPECT_THAT(parse_matrix_layout("colum").status().message(),
              StartsWith("unknown layout of a matrix 'colum'; did you mean 'column'?"));
}

}  // namespace
}  // namespace tutti
