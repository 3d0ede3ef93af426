// How a kernel is launched on GPUs.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "drivers/fake_cuda.hpp"
#include "launch/cuda_stages.hpp"

namespace tutti {
namespace {

TEST(LaunchTest, ThreadsAreWholeWarpsAndStartsAreEarlyWhereTheRowSaysSo) {
  FakeCuda cuda(std::make_shared<FakeCudaWorld>(1));
  CudaLaunch seen;
  cuda.on_launch = [&seen](const CudaLaunch& launch) {
    seen = launch;
    return Status::ok();
  };
  Work work{};
  work.ranks = 2;
  work.blocks = 3;
  for (const bool early : {false, true}) {
    const CudaBody body{.kernel = &work, .threads = 33, .starts_early = early};
    ASSERT_TRUE(launch_on_cuda(cuda, body, work, nullptr).is_ok());
    EXPECT_EQ(seen.kernel, &work);
    EXPECT_EQ(seen.blocks, 3);
    EXPECT_EQ(seen.threads, 64);
    EXPECT_EQ(seen.programmatic, early);
  }
}

// Copies on a stream of their own: another one for what is not captured and for each capture, the
// same one as long as a capture lasts.
TEST(LaunchTest, EachCaptureHasALaneForItsCopies) {
  FakeCuda cuda(std::make_shared<FakeCudaWorld>(1));
  CopyLanes lanes(cuda);
  ASSERT_TRUE(lanes.create(0).is_ok());
  const auto take = [&](Stream stream) -> Stream {
    const auto lane = lanes.lane_for(stream);
    if (!lane.is_ok()) return nullptr;
    CudaStages stages(cuda, {}, **lane, stream);
    stages.copies_wait(stages.kernels());  // whereby the lane becomes part of the capture
    EXPECT_TRUE(stages.status().is_ok()) << stages.status().message();
    return (*lane)->stream;
  };

  const Stream eager = *cuda.create_stream(0);
  const Stream ordinary = take(eager);
  std::vector<Stream> captured, taken;
  for (std::size_t k = 0; k < CopyLanes::kCaptures; ++k) {
    captured.push_back(*cuda.create_stream(0));
    ASSERT_TRUE(cuda.begin_capture(captured.back()).is_ok());
    taken.push_back(take(captured.back()));
    EXPECT_EQ(taken.back(), take(captured.back()));
    EXPECT_EQ(take(eager), ordinary);
  }
  EXPECT_EQ(std::set<Stream>(taken.begin(), taken.end()).size(), taken.size());
  EXPECT_EQ(std::count(taken.begin(), taken.end(), ordinary), 0);
  EXPECT_EQ(std::count(taken.begin(), taken.end(), nullptr), 0);

  const Stream further = *cuda.create_stream(0);
  ASSERT_TRUE(cuda.begin_capture(further).is_ok());
  const auto none = lanes.lane_for(further);
  EXPECT_EQ(none.status().code(), StatusCode::kResourceExhausted);
  ASSERT_TRUE(cuda.end_capture(captured[1]).is_ok());
  EXPECT_EQ(take(further), taken[1]);
}

TEST(LaunchTest, NothingIsEnqueuedBehindWhatCouldNotBe) {
  FakeCuda cuda(std::make_shared<FakeCudaWorld>(1));
  CopyLanes lanes(cuda);
  ASSERT_TRUE(lanes.create(0).is_ok());
  const Stream stream = *cuda.create_stream(0);
  CudaStages stages(cuda, {}, **lanes.lane_for(stream), stream);
  std::byte from[8] = {}, to[8] = {};
  cuda.fail("copy_async", 1);
  for (int k = 0; k < 3; ++k) stages.copy(to, from, sizeof to);
  stages.kernels_wait(stages.copies());
  EXPECT_FALSE(stages.status().is_ok());
  EXPECT_EQ(cuda.calls("copy_async"), 2);
  EXPECT_EQ(cuda.calls("record_event"), 0);
}

bool takes_all(DataType, OpKind) { return true; }
CudaKernel some_kernel(DataType, OpKind, int) { return "a kernel"; }

TEST(LaunchTest, RowsForNewerGpusAreNotLoaded) {
  constexpr Algorithm kRows[] = {
      {.id = "all_reduce/any", .takes = takes_all, .cuda = some_kernel},
      {.id = "all_reduce/newer", .least_compute = 90, .takes = takes_all, .cuda = some_kernel}};
  const auto loaded = [&kRows](int compute) {
    FakeCuda cuda(std::make_shared<FakeCudaWorld>(1));
    EXPECT_TRUE(load_all_kernels(cuda, compute, 2, kRows).is_ok());
    return cuda.calls("load_kernel");
  };
  EXPECT_GT(loaded(80), 0);
  EXPECT_EQ(loaded(90), 2 * loaded(80));
  EXPECT_EQ(loaded(100), loaded(90));
}

}  // namespace
}  // namespace tutti
