// all_gather_matmul on GPUs that do not exist: what is enqueued where, and that a call which is
// refused has enqueued nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "api/all_gather_matmul.hpp"
#include "base/units.hpp"
#include "device/kernel_args.hpp"
#include "fakes/fake_cuda.hpp"
#include "support/check.hpp"
#include "support/fake_gpus.hpp"

namespace tutti::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class AllGatherMatmulGpus : public ::testing::Test {
 protected:
  AllGatherMatmulGpus() {
    gpus_.cuda.on_launch = [this](const CudaLaunch& launch) {
      const auto& work = *static_cast<const KernelArgs*>(launch.arguments[0]);
      signatures_[work.rank].push_back(work.signature);
      return note("gather");
    };
  }

  MatmulSurroundings surroundings() {
    return {
        .cuda = [this](std::string*) { return &gpus_.cuda; },
        .cublas_lt = cublas_lt_,
        .own_kernels = true,
        .load_own = [this](CudaDriver&, const MatmulProblem&,
                           const MatmulTiling&) { return load_; },
        .run_own =
            [this](CudaDriver&, const CheckedMatmul& call, const MatmulTiling&, int,
                   Stream stream) {
              a_ = call.a;
              stream_ = stream;
              return note("own");
            },
        .run_plain = [this](CudaDriver&, const CheckedMatmul&, Stream) { return note("plain"); }};
  }
  // On which GPU, too.
  Status note(const std::string& what) {
    const std::lock_guard lock(mutex_);
    enqueued_.push_back(fmt::format("{} on {}", what, take(gpus_.cuda.current_device())));
    return Status::ok();
  }

  void* memory(int rank) { return take(gpus_.cuda.allocate(rank, 64 * KiB)); }
  AllGatherMatmul call(int rank, DataType dtype = DataType::kBfloat16) {
    return {.a = memory(rank),
            .b = memory(rank),
            .c = memory(rank),
            .m = 128,
            .n = 64,
            .k = 64,
            .dtype = dtype,
            .workspace = memory(rank),
            .workspace_bytes = 64 * KiB,
            .stream = gpus_.make_stream(rank)};
  }
  Communicator& group(int rank) { return gpus_.groups[static_cast<std::size_t>(rank)]; }

  FakeGpus gpus_{2};
  std::string cublas_lt_ = "/no/library";
  Status load_;
  std::mutex mutex_;
  std::vector<std::string> enqueued_;
  std::map<int, std::vector<std::uint32_t>> signatures_;
  const void* a_ = nullptr;
  Stream stream_ = nullptr;
};

TEST_F(AllGatherMatmulGpus, TheProductFollowsTheGatherOnTheRanksGpu) {
  MatmulEngine engine(surroundings());
  AllGatherMatmul one = call(1);
  require_ok(gpus_.cuda.set_device(0));  // not the rank's own
  require_ok(all_gather_matmul(group(1), one, engine));
  EXPECT_THAT(enqueued_, ElementsAre("gather on 1", "own on 1"));
  EXPECT_EQ(a_, one.workspace);
  EXPECT_EQ(stream_, one.stream);
  EXPECT_EQ(take(gpus_.cuda.current_device()), 0);
  one.gathered = memory(1);
  one.m = 127;  // which two ranks do not divide
  require_ok(all_gather_matmul(group(1), one, engine));
  EXPECT_EQ(a_, one.gathered);
  const AllGatherMatmulPlan plan = take(tutti::plan(group(1), one, engine));
  EXPECT_THAT(plan.config, testing::MatchesRegex("all_gather_v/[a-z_]+, own_matmul .*stages"));
}

TEST_F(AllGatherMatmulGpus, WhatIsRefusedHasEnqueuedNothing) {
  MatmulEngine engine(surroundings());
  AllGatherMatmul one = call(0);
  std::vector<std::byte> host(64 * KiB);
  void* const c = std::exchange(one.c, host.data());
  const Status status = all_gather_matmul(group(0), one, engine);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "all_gather_matmul: matmul: c is ordinary host memory, and the product runs on a GPU");
  one.c = c;
  load_ = {StatusCode::kCuda, "no code for this GPU"};
  EXPECT_EQ(all_gather_matmul(group(0), one, engine).message(),
            "all_gather_matmul: no code for this GPU");
  EXPECT_THAT(enqueued_, ElementsAre());
  load_ = {};
  require_ok(group(0).status());
  require_ok(all_gather_matmul(group(0), one, engine));
  EXPECT_THAT(enqueued_, ElementsAre("gather on 0", "own on 0"));
}

// Its place tells where the others' A is.
TEST_F(AllGatherMatmulGpus, FusedAsksForTheAOfRanksWithoutRows) {
  MatmulEngine engine(surroundings());
  AllGatherMatmul one = call(1);
  one.m = 1;
  one.a = nullptr;
  one.algorithm = "fused";
  const Status status = all_gather_matmul(group(1), one, engine);
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_EQ(status.message(),
            "all_gather_matmul/fused: a is null, which has to be in symmetric memory on ranks "
            "without rows, too");
  EXPECT_THAT(enqueued_, ElementsAre());
  require_ok(group(1).status());
}

TEST_F(AllGatherMatmulGpus, ACaptureNeedsAProductThatIsPrepared) {
  cublas_lt_ = STUB_CUBLAS_LT;
  MatmulEngine engine(surroundings());
  const int launches = gpus_.cuda.calls("launch");
  on_all_ranks(2, [&](int rank) {
    require_ok(gpus_.cuda.set_device(rank));
    const AllGatherMatmul one = call(rank, DataType::kFloat32);  // which is cuBLASLt's
    require_ok(gpus_.cuda.begin_capture(one.stream));
    const Status status = all_gather_matmul(group(rank), one, engine);
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    EXPECT_THAT(status.message(), HasSubstr("once before the capture"));
    require_ok(gpus_.cuda.destroy_graph(take(gpus_.cuda.end_capture(one.stream))));
    require_ok(group(rank).status());
  });
  EXPECT_EQ(gpus_.cuda.calls("launch"), launches);
  on_all_ranks(2, [&](int rank) {
    require_ok(gpus_.cuda.set_device(rank));
    const AllGatherMatmul one = call(rank, DataType::kFloat32);
    EXPECT_EQ(take(tutti::plan(group(rank), one, engine)).algorithm, "unfused");
    require_ok(gpus_.cuda.begin_capture(one.stream));
    // The gather was reached.
    EXPECT_EQ(all_gather_matmul(group(rank), one, engine).message(),
              "the fake cannot capture kernels");
    require_ok(gpus_.cuda.destroy_graph(take(gpus_.cuda.end_capture(one.stream))));
  });
}

// What kernels compare has the sizes that a gather alone does not know.
TEST_F(AllGatherMatmulGpus, OtherColumnsAreAnotherOperation) {
  MatmulEngine engine(surroundings());
  AllGatherMatmul here = call(0), there = call(1);
  require_ok(all_gather_matmul(group(0), here, engine));
  require_ok(all_gather_matmul(group(1), there, engine));
  there.n = 32;
  require_ok(all_gather_matmul(group(0), here, engine));
  require_ok(all_gather_matmul(group(1), there, engine));
  ASSERT_EQ(signatures_[0].size(), 2u);
  EXPECT_EQ(signatures_[0][0], signatures_[1][0]);
  EXPECT_EQ(signatures_[0][0], signatures_[0][1]);
  EXPECT_NE(signatures_[0][1], signatures_[1][1]);
}

}  // namespace
}  // namespace tutti::test
