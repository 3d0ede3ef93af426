#include "drivers/matmul.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <thread>
#include <vector>

#include "fakes/fake_cuda.hpp"

namespace tutti {
namespace {

using testing::HasSubstr;

constexpr MatmulShape kShape{.m = 5, .n = 7, .k = 3};  // no two alike: nothing can be swapped

struct Matrices {
  std::vector<float> a, b, c;
};

Matrices some_matrices() {
  Matrices matrices{.a = std::vector<float>(kShape.m * kShape.k),
                    .b = std::vector<float>(kShape.k * kShape.n),
                    .c = std::vector<float>(kShape.m * kShape.n, -1)};
  std::iota(matrices.a.begin(), matrices.a.end(), 1.0F);
  std::iota(matrices.b.begin(), matrices.b.end(), -9.0F);
  return matrices;
}

void expect_product(const Matrices& got) {
  for (std::size_t row = 0; row < kShape.m; ++row) {
    for (std::size_t column = 0; column < kShape.n; ++column) {
      float want = 0;
      for (std::size_t k = 0; k < kShape.k; ++k) {
        want += got.a[row * kShape.k + k] * got.b[k * kShape.n + column];
      }
      EXPECT_EQ(got.c[row * kShape.n + column], want) << row << " " << column;
    }
  }
}

TEST(CublasLtMatmul, MultipliesRowMajorMatrices) {
  FakeCuda cuda(std::make_shared<FakeCudaWorld>(1));
  {
    auto matmul = make_cublas_lt_matmul(cuda, 0, kShape, STUB_CUBLAS_LT);
    ASSERT_TRUE(matmul.is_ok()) << matmul.status().to_string();
    EXPECT_EQ((*matmul)->library(), "cuBLASLt 13.0.2");
    Matrices matrices = some_matrices();
    const Status status =
        (*matmul)->run(matrices.a.data(), matrices.b.data(), matrices.c.data(), nullptr);
    ASSERT_TRUE(status.is_ok()) << status.to_string();
    expect_product(matrices);
  }
  EXPECT_EQ(cuda.open(), FakeCudaOpen{});  // the workspace is free again
}

TEST(CublasLtMatmul, SaysWhatTheLibraryRefuses) {
  FakeCuda cuda(std::make_shared<FakeCudaWorld>(1));
  MatmulShape shape = kShape;
  shape.dtype = DataType::kFloat16;
  const auto refused = make_cublas_lt_matmul(cuda, 0, shape, STUB_CUBLAS_LT);
  EXPECT_EQ(refused.status().code(), StatusCode::kCuda);
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
  std::vector<Matrices> all(4, some_matrices());
  for (Matrices& mine : all) {
    threads.emplace_back([&mine, &matmul = **matmul] {
      EXPECT_TRUE(matmul.run(mine.a.data(), mine.b.data(), mine.c.data(), nullptr).is_ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Matrices& each : all) expect_product(each);
}

TEST(BlasMatmul, RefusesWhatItHasNoProductFor) {
  MatmulShape shape = kShape;
  shape.dtype = DataType::kBfloat16;
  EXPECT_EQ(make_blas_matmul(shape).status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(make_blas_matmul(shape).status().message(), HasSubstr("fp32, not bf16"));
  shape = kShape;
  shape.n = std::size_t{1} << 31;
  EXPECT_THAT(make_blas_matmul(shape).status().message(), HasSubstr("at most 2147483647 rows"));
}

}  // namespace
}  // namespace tutti
