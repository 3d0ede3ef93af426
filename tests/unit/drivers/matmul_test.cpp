#include "drivers/matmul.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <thread>
#include <vector>

#include "drivers/cublas_lt.hpp"
#include "fakes/fake_cuda.hpp"
#include "support/check.hpp"

namespace tutti {
namespace {

using testing::HasSubstr;

constexpr MatmulShape kShape{.m = 5, .n = 7, .k = 3};  // no two alike: nothing can be swapped

// Of kShape, as `shape` lays them out. What lies in gaps is NaN.
struct Matrices {
  std::vector<float> a, b, c, bias;
  MatmulShape shape;

  explicit Matrices(const MatmulShape& of) : shape(of) {
    constexpr float kGap = std::numeric_limits<float>::quiet_NaN();
    if (shape.lda == 0) shape.lda = shape.k;
    const bool rows = shape.b_layout == MatrixLayout::kRowMajor;
    if (shape.ldb == 0) shape.ldb = rows ? shape.n : shape.k;
    if (shape.ldc == 0) shape.ldc = shape.n;
    a.assign(shape.m * shape.lda, kGap);
    b.assign((rows ? shape.k : shape.n) * shape.ldb, kGap);
    c.assign(shape.m * shape.ldc, -1);
    for (std::size_t row = 0; row < shape.m; ++row) {
      for (std::size_t k = 0; k < shape.k; ++k) {
        a[row * shape.lda + k] = static_cast<float>(row * shape.k + k + 1);
      }
    }
    for (std::size_t k = 0; k < shape.k; ++k) {
      for (std::size_t column = 0; column < shape.n; ++column) {
        b[at_b(k, column)] = static_cast<float>(k * shape.n + column) - 9;
      }
    }
    bias.resize(shape.n);
    std::iota(bias.begin(), bias.end(), 100.0F);
  }

  std::size_t at_b(std::size_t k, std::size_t column) const {
    return shape.b_layout == MatrixLayout::kRowMajor ? k * shape.ldb + column
                                                     : column * shape.ldb + k;
  }
  MatmulOperands operands() { return {a.data(), b.data(), c.data(), bias.data()}; }

  void expect_product() const {
    for (std::size_t row = 0; row < shape.m; ++row) {
      for (std::size_t column = 0; column < shape.ldc; ++column) {
        float want = shape.bias ? bias[std::min(column, shape.n - 1)] : 0;
        for (std::size_t k = 0; k < shape.k && column < shape.n; ++k) {
          want += a[row * shape.lda + k] * b[at_b(k, column)];
        }
        if (column >= shape.n) want = -1;  // untouched
        EXPECT_EQ(c[row * shape.ldc + column], want) << row << " " << column;
      }
    }
  }
};

TEST(CublasLtMatmul, MultipliesRowMajorMatrices) {
  FakeCuda cuda(std::make_shared<FakeCudaWorld>(1));
  {
    auto matmul = make_cublas_lt_matmul(cuda, 0, kShape, STUB_CUBLAS_LT);
    ASSERT_TRUE(matmul.is_ok()) << matmul.status().to_string();
    EXPECT_EQ((*matmul)->library(), "cuBLASLt 13.0.2");
    Matrices matrices(kShape);
    const Status status = (*matmul)->run(matrices.operands(), nullptr);
    ASSERT_TRUE(status.is_ok()) << status.to_string();
    matrices.expect_product();
  }
  EXPECT_EQ(cuda.open(), FakeCudaOpen{});  // the workspace is free again
}

TEST(CublasLtMatmul, TakesLayoutsGapsAndBias) {
  FakeCuda cuda(std::make_shared<FakeCudaWorld>(1));
  for (const MatrixLayout layout : {MatrixLayout::kRowMajor, MatrixLayout::kColumnMajor}) {
    for (const bool bias : {false, true}) {
      MatmulShape shape = kShape;
      shape.b_layout = layout;
      shape.lda = 4;
      shape.ldb = 9;
      shape.ldc = 8;
      shape.bias = bias;
      auto matmul = make_cublas_lt_matmul(cuda, 0, shape, STUB_CUBLAS_LT);
      ASSERT_TRUE(matmul.is_ok()) << matmul.status().to_string();
      Matrices matrices(shape);
      const Status status = (*matmul)->run(matrices.operands(), nullptr);
      ASSERT_TRUE(status.is_ok()) << status.to_string();
      matrices.expect_product();
    }
  }
}

TEST(CublasLtMatmul, EachHeuristicThatWorksCanBeChosen) {
  FakeCuda cuda(std::make_shared<FakeCudaWorld>(1));
  auto matmul = make_cublas_lt_matmul(cuda, 0, kShape, STUB_CUBLAS_LT);
  ASSERT_TRUE(matmul.is_ok()) << matmul.status().to_string();
  EXPECT_EQ((*matmul)->heuristics(), 7);  // of eight the stub's third one does not work
  for (int heuristic = 0; heuristic < 7; ++heuristic) {
    (*matmul)->choose(heuristic);
    Matrices matrices(kShape);
    EXPECT_TRUE((*matmul)->run(matrices.operands(), nullptr).is_ok()) << heuristic;
    matrices.expect_product();
  }
}

// The stub's first algorithm alone splits K, and needs 16 bytes and a workspace.
class CublasLtProposals : public testing::Test {
 protected:
  std::size_t first_workspace(const MatmulShape& shape) const {
    const auto product = test::take(library_->prepare(shape));
    return product->workspace_bytes(0);
  }
  const std::shared_ptr<CublasLt> library_ = test::take(CublasLt::open(STUB_CUBLAS_LT));
  MatmulShape shape_{.m = 5, .n = 7, .k = 256, .bias = true, .alignment = 16, .bias_alignment = 16};
};

TEST_F(CublasLtProposals, AreForTheAlignment) {
  EXPECT_EQ(first_workspace(shape_), std::size_t{1} << 20);
  shape_.alignment = 4;
  EXPECT_EQ(first_workspace(shape_), 0U);
}

TEST_F(CublasLtProposals, SplitOnlyAKThatKernelsDivideWithoutARest) {
  shape_.k = 256 + 64;
  EXPECT_EQ(first_workspace(shape_), 0U);
}

TEST_F(CublasLtProposals, NeedAnAlignedBias) {
  shape_.bias_alignment = 8;
  const Status refused = library_->prepare(shape_).status();
  EXPECT_EQ(refused.code(), StatusCode::kUnsupported);
  EXPECT_EQ(refused.message(),
            "cuBLASLt needs a bias at a multiple of 16 bytes, and here it is at a multiple of 8");
  shape_.bias = false;
  EXPECT_EQ(first_workspace(shape_), std::size_t{1} << 20);
}

TEST(CublasLtMatmul, SaysWhatTheLibraryRefuses) {
  FakeCuda cuda(std::make_shared<FakeCudaWorld>(1));
  MatmulShape shape = kShape;
  shape.dtype = DataType::kFloat16;
  const auto refused = make_cublas_lt_matmul(cuda, 0, shape, STUB_CUBLAS_LT);
  EXPECT_EQ(refused.status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(refused.status().message(),
              HasSubstr("cublasLtMatmulAlgoGetHeuristic: the requested functionality"));
  shape.dtype = DataType::kInt32;
  EXPECT_THAT(make_cublas_lt_matmul(cuda, 0, shape, STUB_CUBLAS_LT).status().message(),
              HasSubstr("fp16, bf16 or fp32, not int32"));
}

TEST(CublasLtMatmul, AbsentAndOldLibrariesAreNamed) {
  FakeCuda cuda(std::make_shared<FakeCudaWorld>(1));
  EXPECT_THAT(make_cublas_lt_matmul(cuda, 0, kShape, "libtutti-no-such.so.1").status().message(),
              HasSubstr("cuBLASLt: libtutti-no-such"));
  EXPECT_THAT(make_cublas_lt_matmul(cuda, 0, kShape, STUB_CUBLAS_LT_OLD).status().message(),
              HasSubstr("it takes 12.0.0 or newer"));
}

TEST(BlasMatmul, MultipliesRowMajorMatricesOnManyThreads) {
  auto matmul = make_blas_matmul(kShape);
  if (!matmul.is_ok()) {
    EXPECT_THAT(matmul.status().message(), HasSubstr("install libopenblas0-pthread"));
    GTEST_SKIP() << matmul.status().message();
  }
  EXPECT_FALSE((*matmul)->library().empty());
  std::vector<std::thread> threads;
  std::vector<Matrices> all(4, Matrices(kShape));
  for (Matrices& mine : all) {
    threads.emplace_back(
        [&mine, &matmul = **matmul] { EXPECT_TRUE(matmul.run(mine.operands(), nullptr).is_ok()); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Matrices& each : all) each.expect_product();
}

TEST(BlasMatmul, RefusesWhatItHasNoProductFor) {
  MatmulShape shape = kShape;
  shape.dtype = DataType::kBfloat16;
  EXPECT_EQ(make_blas_matmul(shape).status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(make_blas_matmul(shape).status().message(), HasSubstr("fp32, not bf16"));
  shape = kShape;
  shape.ldc = 8;
  EXPECT_THAT(make_blas_matmul(shape).status().message(), HasSubstr("without gaps"));
  shape = kShape;
  shape.n = std::size_t{1} << 31;
  EXPECT_THAT(make_blas_matmul(shape).status().message(), HasSubstr("at most 2147483647 rows"));
}

}  // namespace
}  // namespace tutti
