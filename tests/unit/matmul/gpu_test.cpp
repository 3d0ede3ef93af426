// matmul() on a GPU, by each algorithm that this machine and build have; skipped where there is
// none.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>
#include <vector>

#include "drivers/cuda.hpp"
#include "matmul/host.hpp"
#include "matmul/tiles.hpp"
#include "matmul_numbers.hpp"
#include "support/check.hpp"

namespace tutti {
namespace {

using test::MatmulNumbers;
using test::Matrix;
using test::NumbersShape;
using test::require_ok;
using test::take;

constexpr std::string_view kOnGpu[] = {"own_matmul", "cublaslt_matmul", "plain_matmul"};

class MatmulOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    cuda_ = real_cuda(&why);
    if (cuda_ == nullptr) GTEST_SKIP() << why;
    require_ok(cuda_->set_device(0));
    stream_ = take(cuda_->create_stream(0));
  }

  void TearDown() override {
    release();
    if (stream_ != nullptr) require_ok(cuda_->destroy_stream(stream_));
  }

  // The call on copies in GPU memory.
  Matmul upload(MatmulNumbers& numbers) {
    release();
    return numbers.call([&](Matrix& matrix) -> void* {
      const std::size_t bytes = matrix.bytes().size();
      if (bytes == 0) return nullptr;
      const CudaAddress copy = take(cuda_->allocate(0, bytes));
      require_ok(cuda_->copy(copy, matrix.data(), bytes));
      copies_[&matrix] = copy;
      return copy;
    });
  }

  void download(MatmulNumbers& numbers) {
    require_ok(cuda_->synchronize(stream_));
    for (Matrix& c : numbers.all_c()) {
      require_ok(cuda_->copy(c.data(), copies_.at(&c), c.bytes().size()));
    }
  }

  // False where the algorithm cannot run it here.
  bool run(MatmulNumbers& numbers, std::string_view algorithm, std::string_view tile = {}) {
    Matmul call = upload(numbers);
    call.algorithm = algorithm;
    call.tile = tile;
    const Status status = matmul(stream_, call);
    if (status.code() == StatusCode::kUnsupported) return false;
    require_ok(status);
    download(numbers);
    return true;
  }

  void release() {
    for (const auto& [matrix, copy] : copies_) require_ok(cuda_->free(copy));
    copies_.clear();
  }

  CudaDriver* cuda_ = nullptr;
  Stream stream_ = nullptr;
  std::map<const Matrix*, CudaAddress> copies_;
};

TEST_F(MatmulOnGpu, AgreesWithSumsInDouble) {
  const NumbersShape shapes[] = {
      {.m = 1, .n = 1, .k = 1},
      {.m = 3, .n = 5, .k = 7, .gap = 2, .bias = true},
      {.m = 1, .n = 512, .k = 1024},
      {.m = 300, .n = 264, .k = 200, .gap = 8, .bias = true, .products = 3, .step = 8},
      {.m = 129, .n = 1032, .k = 1000, .products = 2, .step = 40},
      // Rows begin at multiples of 16 bytes, and end elsewhere: TMA may read no gap, and no store
      // may reach one.
      {.m = 130, .n = 101, .k = 77, .gap = 3, .bias = true},
      {.m = 257, .n = 131, .k = 67, .gap = 1, .bias = true, .products = 2}};
  int plain_ones = 0;
  for (NumbersShape shape : shapes) {
    for (const DataType dtype : {DataType::kFloat32, DataType::kFloat16, DataType::kBfloat16}) {
      for (const MatrixLayout layout : {MatrixLayout::kRowMajor, MatrixLayout::kColumnMajor}) {
        for (const std::string_view algorithm : kOnGpu) {
          shape.dtype = dtype;
          shape.layout = layout;
          MatmulNumbers numbers(shape);
          if (!run(numbers, algorithm)) continue;
          // Tensor cores truncate their sums.
          numbers.expect_right(fmt::format("{} {}x{}x{} {} {}-major", algorithm, shape.m, shape.n,
                                           shape.k, to_string(dtype), to_string(layout)),
                               8);
          plain_ones += algorithm == "plain_matmul" ? 1 : 0;
        }
      }
    }
  }
  EXPECT_EQ(plain_ones, 7 * 3 * 2);  // whatever the machine
}

TEST_F(MatmulOnGpu, ThePlainKernelHasTheBitsOfThePlainLoop) {
  for (const DataType dtype : {DataType::kFloat32, DataType::kFloat16, DataType::kBfloat16}) {
    const NumbersShape shape = {
        .m = 70, .n = 45, .k = 600, .gap = 3, .dtype = dtype, .bias = true, .products = 2};
    MatmulNumbers host(shape), gpu(shape);
    run_host_matmul(take(check(host.call())), nullptr);
    ASSERT_TRUE(run(gpu, "plain_matmul"));
    EXPECT_EQ(gpu.all_c()[0].bytes(), host.all_c()[0].bytes()) << to_string(dtype);
    EXPECT_EQ(gpu.all_c()[1].bytes(), host.all_c()[1].bytes()) << to_string(dtype);
  }
}

TEST_F(MatmulOnGpu, TheTileDoesNotChangeBits) {
  const NumbersShape shape = {.m = 1000, .n = 776, .k = 520, .dtype = DataType::kBfloat16};
  MatmulNumbers first(shape);
  if (!run(first, "own_matmul")) GTEST_SKIP() << "own_matmul cannot run here";
  for (const MatmulTile& tile : kMatmulTiles) {
    MatmulNumbers other(shape);
    ASSERT_TRUE(run(other, "own_matmul", tile.name));
    EXPECT_EQ(other.c().bytes(), first.c().bytes()) << tile.name;
  }
}

TEST_F(MatmulOnGpu, NarrowTilesInTheLastRowsDoNotChangeBits) {
  for (const MatrixLayout layout : {MatrixLayout::kRowMajor, MatrixLayout::kColumnMajor}) {
    // 72 tiles of clusters, of 128x256: with 114 or 132 SMs the second wave would be nearly empty.
    const NumbersShape shape = {.m = 2200,
                                .n = 1000,
                                .k = 72,
                                .dtype = DataType::kBfloat16,
                                .layout = layout,
                                .bias = true,
                                .products = 2,
                                .step = 24};
    MatmulNumbers whole(shape);
    if (!run(whole, "own_matmul", "256x128")) GTEST_SKIP() << "own_matmul cannot run here";
    for (const std::string_view tile : {"128x256", "128x224"}) {
      MatmulNumbers cut(shape);
      Matmul call = upload(cut);
      call.tile = tile;
      const std::string config = take(plan(call)).config;
      EXPECT_NE(config.find(", from row "), std::string::npos) << config;
      ASSERT_TRUE(run(cut, "own_matmul", tile));
      EXPECT_EQ(cut.all_c()[0].bytes(), whole.all_c()[0].bytes()) << config;
      EXPECT_EQ(cut.all_c()[1].bytes(), whole.all_c()[1].bytes()) << config;
    }
  }
}

TEST_F(MatmulOnGpu, NanInfinityAndSubnormalsAreAsInIeee) {
  const std::pair<DataType, double> smallest[] = {{DataType::kFloat16, std::ldexp(1, -24)},
                                                  {DataType::kBfloat16, std::ldexp(1, -133)}};
  for (const auto& [dtype, value] : smallest) {
    for (const std::string_view algorithm : {"own_matmul", "plain_matmul"}) {
      SCOPED_TRACE(fmt::format("{} {}", algorithm, to_string(dtype)));
      MatmulNumbers special = test::special_numbers(dtype);
      if (!run(special, algorithm)) continue;
      test::expect_special(special.c());
      MatmulNumbers subnormal({.m = 1, .n = 8, .k = 8, .dtype = dtype});
      for (std::size_t k = 0; k < 8; ++k) {
        subnormal.a().set(0, k, value);
        for (std::size_t column = 0; column < 8; ++column) subnormal.b().set(k, column, 1);
      }
      ASSERT_TRUE(run(subnormal, algorithm));
      EXPECT_EQ(subnormal.c().get(0, 7), 8 * value);
    }
  }
}

TEST_F(MatmulOnGpu, WithoutKItIsTheBias) {
  MatmulNumbers numbers(
      {.m = 100, .n = 50, .k = 0, .dtype = DataType::kBfloat16, .bias = true, .products = 2});
  ASSERT_TRUE(run(numbers, ""));
  numbers.expect_right("k = 0");
}

TEST_F(MatmulOnGpu, TuneKeepsAWayThatIsRight) {
  // Few rows, with several heuristics that split K; many, with tiles; and two products.
  const NumbersShape shapes[] = {
      {.m = 8, .n = 256, .k = 8192},
      {.m = 1000, .n = 776, .k = 520, .bias = true},
      {.m = 300, .n = 264, .k = 256, .gap = 8, .products = 2, .step = 8}};
  for (NumbersShape shape : shapes) {
    shape.dtype = DataType::kBfloat16;
    MatmulNumbers numbers(shape);
    const Matmul call = upload(numbers);
    const auto tuned = tune(stream_, call);
    require_ok(tuned.status());
    if (tuned->algorithm == "plain_matmul") GTEST_SKIP() << "there is nothing to compare";
    EXPECT_EQ(tuned->why.rfind("measured: ", 0), 0U) << tuned->why;
    EXPECT_EQ(take(plan(call)).config, tuned->config);
    EXPECT_NE(take(explain(call)).find("measured: "), std::string::npos);
    const std::vector<std::byte> before = numbers.c().bytes();
    download(numbers);
    EXPECT_EQ(numbers.c().bytes(), before);
    require_ok(matmul(stream_, call));
    download(numbers);
    numbers.expect_right(tuned->algorithm + ", " + tuned->config, 8);
  }
}

TEST_F(MatmulOnGpu, ACaptureRunsWhatWasPlannedBefore) {
  for (const std::string_view algorithm : kOnGpu) {
    // So few rows that cuBLASLt may split K, for which it needs a workspace.
    MatmulNumbers numbers({.m = 8, .n = 256, .k = 8192, .dtype = DataType::kBfloat16});
    Matmul call = upload(numbers);
    call.algorithm = algorithm;
    if (plan(call).status().code() == StatusCode::kUnsupported) continue;
    require_ok(cuda_->begin_capture(stream_));
    require_ok(matmul(stream_, call));
    const CudaGraph graph = take(cuda_->end_capture(stream_));
    const CudaGraphExec exec = take(cuda_->instantiate(graph));
    require_ok(cuda_->launch_graph(exec, stream_));
    require_ok(cuda_->launch_graph(exec, stream_));
    download(numbers);
    numbers.expect_right(algorithm, 8);
    require_ok(cuda_->destroy_graph_exec(exec));
    require_ok(cuda_->destroy_graph(graph));
  }
}

}  // namespace
}  // namespace tutti
