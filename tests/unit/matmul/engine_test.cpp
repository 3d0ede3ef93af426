#include "matmul/engine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "base/units.hpp"
#include "engine_fixture.hpp"
#include "fakes/fake_cuda.hpp"
#include "support/check.hpp"

namespace tutti {
namespace {

using test::require_ok;
using test::take;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class MatmulEngineTest : public test::EngineFixture {};

TEST_F(MatmulEngineTest, RunsWhereAIs) {
  std::vector<float> a(6, 1), b(8, 2), c(12), more_c(3);
  const std::vector<MatmulProduct> more = {{.b = b.data(), .c = more_c.data(), .n = 1}};
  const Matmul host = {.a = a.data(),
                       .b = b.data(),
                       .c = c.data(),
                       .m = 3,
                       .n = 4,
                       .k = 2,
                       .dtype = DataType::kFloat32,
                       .more = more};
  require_ok(engine.run(nullptr, host));
  EXPECT_EQ(c, std::vector<float>(12, 4));
  EXPECT_EQ(more_c, std::vector<float>(3, 4));
  EXPECT_EQ(take(engine.plan(host)).algorithm, "host_matmul");
  EXPECT_THAT(take(engine.explain(host)), HasSubstr("\n  * host_matmul      can run it: "));

  const Matmul gpu = on_gpu(3, DataType::kFloat32);
  auto* const ones = static_cast<float*>(const_cast<void*>(gpu.a));
  std::fill(ones, ones + 3 * 128, 1.0F);
  auto* const twos = static_cast<float*>(const_cast<void*>(gpu.b));
  std::fill(twos, twos + 128 * 64, 2.0F);
  require_ok(engine.run(nullptr, gpu));
  EXPECT_EQ(static_cast<float*>(gpu.c)[3 * 64 - 1], 256);
  EXPECT_EQ(take(engine.plan(gpu)).algorithm, "cublaslt_matmul");
  EXPECT_THAT(take(engine.explain(gpu)), HasSubstr("cublaslt_matmul  can run it: cuBLASLt 13.0.2"));
}

TEST_F(MatmulEngineTest, AllMatricesAreWhereAIs) {
  Matmul call = on_gpu(3, DataType::kFloat32);
  std::vector<float> host(64 * 64);
  void* const c = std::exchange(call.c, host.data());
  EXPECT_EQ(engine.run(nullptr, call).message(),
            "matmul: c is ordinary host memory, and the product runs on a GPU");
  call.c = c;
  call.bias = host.data();
  EXPECT_EQ(engine.run(nullptr, call).message(),
            "matmul: bias is ordinary host memory, and the product runs on a GPU");
  call.a = host.data();
  EXPECT_EQ(engine.run(nullptr, call).message(),
            "matmul: b is memory of a GPU, and the product runs on the host");
  call.backend = Backend::kCuda;
  EXPECT_EQ(engine.run(nullptr, call).message(),
            "matmul: a is ordinary host memory, and the product runs on a GPU");
  EXPECT_EQ(engine.run(nullptr, call).code(), StatusCode::kInvalidArgument);
}

TEST_F(MatmulEngineTest, WithoutCudaThereIsTheHost) {
  MatmulEngine none({.cuda = [](std::string* why) -> CudaDriver* {
    *why = "no driver";
    return nullptr;
  }});
  std::vector<float> matrix(1, 3);
  Matmul call = {.a = matrix.data(),
                 .b = matrix.data(),
                 .c = matrix.data(),
                 .m = 1,
                 .n = 1,
                 .k = 1,
                 .dtype = DataType::kFloat32,
                 .backend = Backend::kCuda};
  const Status status = none.run(nullptr, call);
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_EQ(status.message(), "matmul: no CUDA: no driver");
  call.backend = Backend::kAuto;
  require_ok(none.run(nullptr, call));
  EXPECT_EQ(matrix[0], 9);
}

TEST_F(MatmulEngineTest, StartsTheKernelThatIsSelected) {
  Matmul call = on_gpu(64, DataType::kBfloat16);
  require_ok(engine.run(nullptr, call));
  EXPECT_THAT(kernels, ElementsAre());  // the stub has multiplied
  call.tile = "256x128";
  require_ok(engine.run(nullptr, call));
  EXPECT_EQ(take(engine.plan(call)).config, "256x128x64, cluster 1x1, 4 stages");
  call.tile = {};
  call.algorithm = "plain_matmul";
  require_ok(engine.run(nullptr, call));
  EXPECT_THAT(kernels, ElementsAre("own 256x128", "plain"));
}

TEST_F(MatmulEngineTest, WhatIsReadyHasAllItNeedsAndHasStartedNothing) {
  const Matmul library = on_gpu(64, DataType::kBfloat16);
  auto* const c = static_cast<std::uint16_t*>(library.c);
  std::fill(c, c + 64 * 64, std::uint16_t{0x1234});
  const auto made = take(engine.ready(nullptr, library));
  EXPECT_EQ(std::count(c, c + 64 * 64, 0x1234), 64 * 64);
  const std::size_t allocations = cuda.open().allocations;
  require_ok(engine.run(made));
  EXPECT_EQ(cuda.open().allocations, allocations) << "a workspace that was not made ready";
  EXPECT_EQ(std::count(c, c + 64 * 64, 0x1234), 0);

  Matmul own = on_gpu(64, DataType::kBfloat16);
  own.algorithm = "own_matmul";
  const auto made_own = take(engine.ready(nullptr, own));
  EXPECT_THAT(kernels, ElementsAre());
  require_ok(engine.run(made_own));
  require_ok(engine.run(made_own));
  EXPECT_EQ(kernels.size(), 2u);

  own.dtype = DataType::kFloat32;
  EXPECT_EQ(engine.ready(nullptr, own).status().code(), StatusCode::kUnsupported);
  own.c = nullptr;
  EXPECT_EQ(engine.ready(nullptr, own).status().message(), "matmul: null c");
  std::vector<float> one(1, 3);
  const Matmul host = {.a = one.data(),
                       .b = one.data(),
                       .c = one.data(),
                       .m = 1,
                       .n = 1,
                       .k = 1,
                       .dtype = DataType::kFloat32};
  const auto made_host = take(engine.ready(nullptr, host));
  EXPECT_EQ(one[0], 3);
  require_ok(engine.run(made_host));
  EXPECT_EQ(one[0], 9);
}

// As many as a pipeline has streams, and more: none takes another one's workspace.
TEST_F(MatmulEngineTest, WhatIsReadyKeepsItsWorkspace) {
  const Matmul call = on_gpu(64, DataType::kBfloat16);
  const std::size_t before = cuda.open().allocations;
  std::vector<MatmulEngine::Ready> made;
  for (int round = 0; round < 2; ++round) {
    made.clear();
    for (int i = 0; i <= CublasLtWorkspaces::kMostStreams; ++i) {
      made.push_back(take(engine.ready(take(cuda.create_stream(0)), call)));
    }
    EXPECT_EQ(cuda.open().allocations, before + made.size()) << round;
    for (const MatmulEngine::Ready& each : made) require_ok(engine.run(each));
    EXPECT_EQ(cuda.open().allocations, before + made.size()) << round;
  }
  EXPECT_EQ(cuda.calls("free"), 0);
}

TEST_F(MatmulEngineTest, FillsWithoutK) {
  Matmul call = on_gpu(64, DataType::kBfloat16);
  call.k = 0;
  call.a = call.b = nullptr;
  require_ok(engine.run(nullptr, call));
  EXPECT_THAT(kernels, ElementsAre("plain"));
}

TEST_F(MatmulEngineTest, WithoutRowsThereIsNothingToDo) {
  Matmul call = {.m = 0, .n = 64, .k = 64};
  require_ok(engine.run(nullptr, call));
  EXPECT_EQ(take(engine.plan(call)).algorithm, "");
  EXPECT_EQ(take(engine.explain(call)), "matmul: M or N is 0: there is nothing to compute\n");
  call.algorithm = "best";
  EXPECT_EQ(engine.run(nullptr, call).code(), StatusCode::kInvalidArgument);
}

TEST_F(MatmulEngineTest, WhatCublasLtRefusesGoesElsewhere) {
  Matmul call = on_gpu(64, DataType::kFloat16);  // the stub has no fp16
  require_ok(engine.run(nullptr, call));
  const MatmulPlan plan = take(engine.plan(call));
  EXPECT_EQ(plan.algorithm, "own_matmul");
  EXPECT_THAT(plan.why, StartsWith("cublaslt_matmul: cublasLtMatmulAlgoGetHeuristic: "));
  EXPECT_THAT(take(engine.explain(call)), HasSubstr("cublaslt_matmul  cannot run it: cublasLtM"));
  call.lda = 129;  // no multiple of 16 bytes
  require_ok(engine.run(nullptr, call));
  EXPECT_THAT(kernels, ElementsAre(StartsWith("own "), "plain"));
  call.algorithm = "cublaslt_matmul";
  const Status forced = engine.run(nullptr, call);
  EXPECT_EQ(forced.code(), StatusCode::kUnsupported);
  EXPECT_THAT(forced.message(), StartsWith("cublaslt_matmul: cublasLtMatmulAlgoGetHeuristic: "));
  EXPECT_THAT(take(engine.explain(call)), HasSubstr("\nno plan: cublaslt_matmul: cublasLtM"));
}

TEST_F(MatmulEngineTest, CaptureNeedsAProductThatCublasLtKnows) {
  Stream const stream = take(cuda.create_stream(0));
  const Matmul call = on_gpu(3, DataType::kFloat32);
  require_ok(cuda.begin_capture(stream));
  const Status unknown = engine.run(stream, call);
  EXPECT_EQ(unknown.code(), StatusCode::kUnsupported);
  EXPECT_THAT(unknown.message(), HasSubstr("once before the capture"));
  require_ok(cuda.destroy_graph(take(cuda.end_capture(stream))));

  EXPECT_EQ(take(engine.plan(call)).algorithm, "cublaslt_matmul");
  require_ok(cuda.begin_capture(stream));
  require_ok(engine.run(stream, call));
  require_ok(cuda.destroy_graph(take(cuda.end_capture(stream))));
}

TEST_F(MatmulEngineTest, TheOwnKernelStepsInDuringACapture) {
  Stream const stream = take(cuda.create_stream(0));
  Matmul call = on_gpu(3, DataType::kBfloat16);
  require_ok(cuda.begin_capture(stream));
  require_ok(engine.run(stream, call));
  EXPECT_THAT(kernels, ElementsAre(StartsWith("own ")));
  call.algorithm = "cublaslt_matmul";
  EXPECT_EQ(engine.run(stream, call).code(), StatusCode::kUnsupported);
  call.algorithm = {};
  require_ok(cuda.destroy_graph(take(cuda.end_capture(stream))));

  require_ok(engine.run(stream, call));
  require_ok(cuda.begin_capture(stream));
  require_ok(engine.run(stream, call));
  require_ok(cuda.destroy_graph(take(cuda.end_capture(stream))));
  EXPECT_EQ(kernels.size(), 1U);  // the others were cuBLASLt's
}

// In a capture cuBLASLt is not opened, so what is known of it there is not kept.
TEST_F(MatmulEngineTest, ACaptureDoesNotDecideWhetherThereIsALibrary) {
  MatmulSurroundings without = surroundings();
  without.cublas_lt = "/nowhere/libcublasLt.so";
  MatmulEngine other(without);
  Stream const stream = take(cuda.create_stream(0));
  Matmul call = on_gpu(8192, DataType::kBfloat16);
  call.n = call.k = 8192;
  require_ok(cuda.begin_capture(stream));
  require_ok(other.run(stream, call));
  require_ok(cuda.destroy_graph(take(cuda.end_capture(stream))));
  EXPECT_THAT(kernels, ElementsAre(StartsWith("own ")));
  EXPECT_THAT(take(other.explain(call)), HasSubstr("cublaslt_matmul  cannot run it: "));
}

class CublasLtWorkspacesTest : public testing::Test {
 protected:
  static constexpr std::size_t kMost = CublasLtWorkspaces::kMostStreams;

  CublasLtWorkspaces::Lease lease_of(Stream stream, int device = 0) {
    return take(workspaces->of(device, stream, take(cuda.capture_of(stream))));
  }
  CudaAddress address_of(Stream stream, int device = 0) {
    return CublasLtWorkspaces::workspace(lease_of(stream, device)).address;
  }
  // With a product in each, that has ended.
  std::vector<Stream> as_many_as_are_kept(int device = 0) {
    std::vector<Stream> streams;
    for (std::size_t i = 0; i < kMost; ++i) {
      streams.push_back(take(cuda.create_stream(device)));
      take(workspaces->of(device, streams.back(), {}));
    }
    for (Stream const stream : streams) workspaces->used(lease_of(stream, device));
    return streams;
  }

  FakeCuda cuda{std::make_shared<FakeCudaWorld>(2)};
  std::unique_ptr<CublasLtWorkspaces> workspaces = std::make_unique<CublasLtWorkspaces>(cuda);
};

TEST_F(CublasLtWorkspacesTest, OneForEachStream) {
  Stream const first = take(cuda.create_stream(0)), second = take(cuda.create_stream(0));
  const CublasLtWorkspace one = CublasLtWorkspaces::workspace(lease_of(first));
  EXPECT_EQ(one.bytes, 32 * MiB);
  EXPECT_NE(address_of(second), one.address);
  EXPECT_EQ(address_of(first), one.address);
  EXPECT_EQ(cuda.open().allocations, 2U);
  workspaces->used(lease_of(first));
  EXPECT_EQ(cuda.calls("record_event"), 0) << "before another stream could want it";
  workspaces = nullptr;
  EXPECT_EQ(cuda.open().allocations, 0U);
}

// Nothing is ever freed, since that waits for all kernels.
TEST_F(CublasLtWorkspacesTest, AnotherStreamGetsTheOneThatWasNotUsedForLongest) {
  const std::vector<Stream> streams = as_many_as_are_kept();
  const CudaAddress of_first = address_of(streams[0]), of_second = address_of(streams[1]);
  address_of(streams[0]);
  for (std::size_t i = 2; i < kMost; ++i) address_of(streams[i]);
  address_of(streams[0]);
  EXPECT_EQ(address_of(take(cuda.create_stream(0))), of_second);
  EXPECT_EQ(address_of(streams[0]), of_first);
  EXPECT_EQ(cuda.open().allocations, kMost);
  EXPECT_EQ(cuda.calls("free"), 0);
  workspaces = nullptr;
  EXPECT_EQ(cuda.open().allocations, 0U);
  EXPECT_EQ(cuda.open().events, 0U);
}

TEST_F(CublasLtWorkspacesTest, NoStreamGetsOneThatIsInUse) {
  const std::vector<Stream> streams = as_many_as_are_kept();
  std::vector<CublasLtWorkspaces::Lease> held;
  for (std::size_t i = 2; i < kMost; ++i) held.push_back(lease_of(streams[i]));
  const auto gate = std::make_shared<std::atomic<bool>>(false);
  cuda.add_gate(streams[1], gate);
  workspaces->used(lease_of(streams[1]));  // its product runs
  const CudaAddress of_first = address_of(streams[0]), of_second = address_of(streams[1]);
  held.push_back(lease_of(take(cuda.create_stream(0))));
  EXPECT_EQ(CublasLtWorkspaces::workspace(held.back()).address, of_first);
  EXPECT_EQ(cuda.open().allocations, kMost);
  held.push_back(lease_of(take(cuda.create_stream(0))));
  EXPECT_EQ(cuda.open().allocations, kMost + 1) << "all others may run";
  gate->store(true);
  EXPECT_EQ(address_of(take(cuda.create_stream(0))), of_second);
}

TEST_F(CublasLtWorkspacesTest, EachDeviceHasItsOwn) {
  as_many_as_are_kept(0);
  const std::vector<Stream> others = as_many_as_are_kept(1);
  EXPECT_EQ(cuda.open().allocations, 2 * kMost);
  const CudaAddress of_first = address_of(others[0], 1);
  for (std::size_t i = 1; i < kMost; ++i) address_of(others[i], 1);
  EXPECT_EQ(address_of(take(cuda.create_stream(1)), 1), of_first);
}

TEST_F(CublasLtWorkspacesTest, AGraphKeepsItsOwn) {
  Stream const stream = take(cuda.create_stream(0));
  const CudaAddress of_stream = address_of(stream);
  require_ok(cuda.begin_capture(stream));
  const CudaAddress of_graph = address_of(stream);
  EXPECT_NE(of_graph, of_stream);
  EXPECT_EQ(address_of(stream), of_graph);
  CudaGraph const graph = take(cuda.end_capture(stream));
  EXPECT_EQ(address_of(stream), of_stream);

  require_ok(cuda.begin_capture(stream));
  EXPECT_NE(address_of(stream), of_graph);  // the graph may run beside this one
  require_ok(cuda.destroy_graph(take(cuda.end_capture(stream))));
  require_ok(cuda.destroy_graph(graph));
  const int allocated = cuda.calls("allocate");
  require_ok(cuda.begin_capture(stream));
  address_of(stream);
  require_ok(cuda.destroy_graph(take(cuda.end_capture(stream))));
  EXPECT_EQ(cuda.calls("allocate"), allocated);  // what graphs that are gone had kept
}

}  // namespace
}  // namespace tutti
