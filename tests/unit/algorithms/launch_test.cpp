// How a kernel is launched on GPUs.
#include <gtest/gtest.h>

#include <memory>

#include "drivers/fake_cuda.hpp"
#include "launch/cuda.hpp"

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
