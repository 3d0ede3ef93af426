// How a kernel is launched on GPUs.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <set>
#include <vector>

#include "executors/copy_engine/cuda_stages.hpp"
#include "fakes/fake_cuda.hpp"

namespace tutti {
namespace {

TEST(LaunchTest, ThreadsAreWholeWarpsAndStartsAreEarlyWhereTheRowSaysSo) {
  FakeCuda cuda(std::make_shared<FakeCudaWorld>(1));
  CudaLaunch seen;
  cuda.on_launch = [&seen](const CudaLaunch& launch) {
    seen = launch;
    return Status::ok();
  };
  KernelArgs work{};
  work.ranks = 2;
  work.blocks = 3;
  for (const bool early : {false, true}) {
    const CudaBody body{.kernel = &work, .threads = 33, .starts_early = early, .cluster = 3};
    ASSERT_TRUE(launch_on_cuda(cuda, body, work, nullptr).is_ok());
    EXPECT_EQ(seen.kernel, &work);
    EXPECT_EQ(seen.blocks, 3);
    EXPECT_EQ(seen.threads, 64);
    EXPECT_EQ(seen.programmatic, early);
    EXPECT_EQ(seen.cluster, 3);
  }
}

// Whatever a user gives: clusters divide the grid, and no token goes without one that could have
// it.
TEST(LaunchTest, ClustersShareAGridOutToTokens) {
  for (int blocks = 1; blocks <= kMaxBlocks; ++blocks) {
    for (const std::size_t tokens : {0u, 1u, 2u, 3u, 16u, 40u, 64u, 128u, 129u, 100000u}) {
      const int cluster = cluster_of(blocks, tokens);
      EXPECT_EQ(blocks % cluster, 0) << blocks << " " << tokens;
      EXPECT_LE(cluster, kMaxClusterBlocks);
      if (cluster > 1) {
        EXPECT_GE(static_cast<std::size_t>(blocks / cluster), tokens) << blocks << " " << tokens;
      }
    }
  }
  EXPECT_EQ(cluster_of(8, 1), 8);
  EXPECT_EQ(cluster_of(128, 16), 8);
  EXPECT_EQ(cluster_of(128, 32), 4);
  EXPECT_EQ(cluster_of(128, 33), 2);
  EXPECT_EQ(cluster_of(128, 65), 1);
  EXPECT_EQ(cluster_of(3, 1), 1);
}

// Each thread of a row that shares tokens out to clusters has one tile while there are blocks.
TEST(LaunchTest, GridsOfTokensGiveEachThreadATile) {
  const auto row = find_algorithm(Collective::kAllReduceResidualRmsNorm, "one_shot_push");
  ASSERT_TRUE(row.is_ok());
  ASSERT_NE((*row)->cluster, nullptr);
  constexpr std::uint32_t kTokenBytes = 16384;
  struct Expected {
    std::uint32_t tokens;
    int blocks, cluster, threads;
  };
  for (const auto& [tokens, blocks, cluster, threads] :
       {Expected{1, 8, 8, 128}, Expected{16, 128, 8, 128}, Expected{17, 68, 4, 256},
        Expected{32, 128, 4, 256}, Expected{64, 128, 2, 512}, Expected{65, 65, 1, 512},
        Expected{1000, 128, 1, 512}}) {
    const Geometry geometry = (*row)->geometry({std::size_t{tokens} * kTokenBytes, 4, kTokenBytes});
    EXPECT_EQ(geometry.blocks, blocks) << tokens;
    EXPECT_EQ(geometry.threads, threads) << tokens;
    KernelArgs work{};
    work.blocks = geometry.blocks;
    work.norm.tokens = tokens;
    EXPECT_EQ((*row)->cluster(work), cluster) << tokens;
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
    EXPECT_TRUE(stages.finish().is_ok()) << stages.finish().message();
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
  for (int k = 0; k < 3; ++k) stages.copy_among_kernels(to, from, sizeof to);
  stages.kernels_wait(stages.copies());
  EXPECT_FALSE(stages.finish().is_ok());
  EXPECT_EQ(cuda.calls("copy_async"), 2);
  EXPECT_EQ(cuda.calls("record_event"), 0);
}

// As one batch: but for a single one, and in captures, which take no batches.
TEST(LaunchTest, CopiesThatNothingStandsBetweenGoTogether) {
  FakeCuda cuda(std::make_shared<FakeCudaWorld>(1));
  CopyLanes lanes(cuda);
  ASSERT_TRUE(lanes.create(0).is_ok());
  const Stream stream = *cuda.create_stream(0);
  std::byte from[6], to[6] = {};
  for (int k = 0; k < 6; ++k) from[k] = static_cast<std::byte>(k + 1);
  const auto copy_six = [&] {
    std::memset(to, 0, sizeof to);
    CudaStages stages(cuda, {}, **lanes.lane_for(stream), stream);
    stages.copies_wait(stages.kernels());
    for (int k = 0; k < 3; ++k) stages.copy(to + k, from + k, 1);
    stages.copy(to, from, 0);
    stages.kernels_wait(stages.copies());
    stages.copy(to + 3, from + 3, 1);
    stages.copy_among_kernels(to + 4, from + 4, 1);
    stages.copy(to + 5, from + 5, 1);
    stages.kernels_wait(stages.copies());
    EXPECT_TRUE(stages.finish().is_ok()) << stages.finish().message();
  };
  copy_six();
  EXPECT_TRUE(std::equal(std::begin(from), std::end(from), std::begin(to)));
  EXPECT_EQ(cuda.calls("copy_batch"), 1);
  EXPECT_EQ(cuda.calls("copy_async"), 3);

  ASSERT_TRUE(cuda.begin_capture(stream).is_ok());
  copy_six();
  ASSERT_TRUE(cuda.end_capture(stream).is_ok());
  EXPECT_EQ(cuda.calls("copy_batch"), 1);
  EXPECT_EQ(cuda.calls("copy_async"), 9);
  EXPECT_FALSE(cuda.begin_capture(stream).is_ok() && cuda.copy_batch({}, stream).is_ok());
}

// Pieces of 10 bytes, in chunks of 4, 4 and 2.
TEST(LaunchTest, AnnouncedCopiesAreCutIntoChunksAndEachIsFollowedByItsWord) {
  FakeCuda cuda(std::make_shared<FakeCudaWorld>(1));
  const Stream stream = *cuda.create_stream(0);
  std::array<std::uint32_t, 9> words{};
  std::array<std::byte, 30> from{}, to{};
  from.fill(std::byte{1});
  CopyLane same{.stream = stream};
  CudaStages stages(cuda, {}, same, stream);
  stages.announce({.words = words.data(),
                   .value = 7,
                   .piece_bytes = 10,
                   .chunk_bytes = 4,
                   .output_bytes = 30,
                   .chunks = 3},
                  to.data(), to.size());
  std::array<std::byte, 3> elsewhere{};
  stages.copy(elsewhere.data(), from.data(), 2);
  const auto copy = [&](std::size_t first, std::size_t bytes) {
    stages.copy(to.data() + first, from.data() + first, bytes);
    stages.end_batch();
  };
  copy(20, 10);
  EXPECT_EQ(words, (std::array<std::uint32_t, 9>{0, 0, 0, 0, 0, 0, 7, 7, 0}));
  EXPECT_EQ(cuda.calls("copy_async"), 4);
  EXPECT_EQ(cuda.calls("memory_operations"), 2) << "the last word may be another batch's";
  copy(0, 6);  // one pass of two
  EXPECT_EQ(words, (std::array<std::uint32_t, 9>{7, 0, 0, 0, 0, 0, 7, 7, 7}));
  stages.kernels_wait(stages.copies());
  copy(6, 4);
  ASSERT_TRUE(stages.finish().is_ok());
  EXPECT_EQ(words, (std::array<std::uint32_t, 9>{7, 7, 7, 0, 0, 0, 7, 7, 7}));
  EXPECT_EQ(cuda.calls("memory_operations"), 6) << "what goes elsewhere has no word";
  EXPECT_EQ(cuda.calls("record_event") + cuda.calls("wait_event"), 0) << "one stream";
  EXPECT_EQ(std::count(to.begin(), to.end(), std::byte{1}), 20);
  cuda.fail("memory_operations", 0);
  copy(10, 10);
  EXPECT_FALSE(stages.finish().is_ok());
  EXPECT_EQ(words[3] + words[4] + words[5], 0u);
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

// Few tokens have clusters of blocks, many a block each.
TEST(LaunchTest, ClustersHaveATokenEach) {
  const auto row = find_algorithm(Collective::kAllReduceResidualRmsNorm, "one_shot_push");
  ASSERT_TRUE(row.is_ok());
  constexpr std::uint32_t kTokenBytes = 16384;
  for (const auto& [tokens, blocks, cluster] :
       {std::array{1, 8, 8}, {2, 16, 8}, {16, 128, 8}, {17, 68, 4}, {250, 128, 1}}) {
    const auto bytes = static_cast<std::size_t>(tokens) * kTokenBytes;
    EXPECT_EQ((*row)->geometry({bytes, 4, kTokenBytes}).blocks, blocks) << tokens;
    KernelArgs work{};
    work.ranks = 4;
    work.blocks = blocks;
    work.norm.tokens = static_cast<std::uint32_t>(tokens);
    EXPECT_EQ((*row)->cluster(work), cluster) << tokens;
  }
}

// A row's second kernel has a block for each token, and one of its kernels for what comes in whole
// vectors.
TEST(LaunchTest, TheSecondKernelSuitsTheTokens) {
  const auto row = find_algorithm(Collective::kAllReduceResidualRmsNorm, "two_shot");
  ASSERT_TRUE(row.is_ok());
  alignas(16) std::byte memory[32];
  const auto grid = [&](std::uint32_t hidden, DataType output, std::size_t offset) {
    KernelArgs work{};
    work.output = memory;
    work.norm = {.weight = memory,
                 .output = memory + offset,
                 .tokens = 300,
                 .hidden = hidden,
                 .output_dtype = output};
    return (*row)->then.grid(work, size_of(DataType::kBfloat16));
  };
  EXPECT_EQ(grid(8192, DataType::kBfloat16, 0).blocks, 300);
  EXPECT_EQ(grid(8192, DataType::kBfloat16, 0).threads, 512);
  EXPECT_EQ(grid(4096, DataType::kBfloat16, 0).threads, 256);
  EXPECT_EQ(grid(8, DataType::kBfloat16, 0).threads, 32);
  const int whole = grid(8192, DataType::kBfloat16, 0).kernel;
  const int any = grid(8191, DataType::kBfloat16, 0).kernel;
  EXPECT_NE(whole, any);
  EXPECT_EQ(grid(8192, DataType::kBfloat16, 8).kernel, any) << "half a vector off";
  EXPECT_NE(grid(8192, DataType::kFloat8E4M3, 8).kernel, any) << "8 elements of 8 bits";
  EXPECT_EQ(grid(8192, DataType::kFloat8E4M3, 4).kernel, any);
}

}  // namespace
}  // namespace tutti
