// NCCL's copy engines: on what they run, and when not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nccl_windows_group.hpp"

namespace tutti::test {
namespace {

using ::testing::HasSubstr;

// A third communicator, with windows over all memory and over what it is warmed up with.
TEST(NcclCopyEngineTest, HasACommunicatorOfItsOwn) {
  Windows windows;
  windows.open();
  const auto memory = windows.allocate();
  const auto at = [&](int r) {
    return static_cast<std::byte*>(memory[static_cast<std::size_t>(r)].data());
  };
  const auto gather = [&](int r) {
    return all_gather(windows.group(r), {.input = at(r) + 2048,
                                         .output = at(r),
                                         .count = 32,
                                         .dtype = DataType::kUint8,
                                         .stream = windows.world.stream(r),
                                         .options = {.algorithm = "nccl_copy_engine"}});
  };
  windows.all(gather);
  EXPECT_EQ(windows.nccl().open_communicators(), 3 * Windows::kRanks);
  EXPECT_EQ(windows.nccl().open_windows(), 3 * Windows::kRanks);
  const std::size_t first = windows.nccl().calls().size();
  windows.all(gather);
  windows.all([&](int r) {
    return all_to_all(windows.group(r), {.input = at(r) + 2048,
                                         .output = at(r),
                                         .count = 64,
                                         .dtype = DataType::kUint8,
                                         .stream = windows.world.stream(r),
                                         .options = {.algorithm = "nccl_copy_engine"}});
  });
  EXPECT_EQ(windows.in_windows(first), 2 * Windows::kRanks);
  const auto calls = windows.nccl().calls();
  for (std::size_t k = first; k < calls.size(); ++k) {
    if (!calls[k].in_windows) continue;
    EXPECT_EQ(calls[k].mover, NcclMover::kCopyEngines) << calls[k].name;
  }
  const std::size_t kernels = calls.size();
  for (const Status& status : windows.reduce(memory, "nccl_window")) require_ok(status);
  EXPECT_EQ(windows.nccl().calls().at(kernels).mover, NcclMover::kKernels);
  windows.world.groups.clear();
  EXPECT_EQ(windows.nccl().open_communicators(), 0);
  EXPECT_EQ(windows.nccl().windows_left_behind(), 0);
}

// Every rank gives both sides, the root's at the same place: who lacks one is refused before NCCL
// takes another way than the others.
TEST(NcclCopyEngineTest, GathersAndScattersTakeBothSidesOnEveryRank) {
  Windows windows;
  windows.open();
  const auto memory = windows.allocate();
  const auto at = [&](int r) {
    return static_cast<std::byte*>(memory[static_cast<std::size_t>(r)].data());
  };
  const auto move = [&](int r, bool gathers, bool both) {
    const auto fill = [&](auto call) {
      const bool has_input = both || gathers || r == 1, has_output = both || !gathers || r == 1;
      call.input = has_input ? at(r) : nullptr;
      call.output = has_output ? at(r) + 2048 : nullptr;
      call.count = 32;
      call.dtype = DataType::kUint8;
      call.root = 1;
      call.stream = windows.world.stream(r);
      call.options = {.algorithm = "nccl_copy_engine"};
      return call;
    };
    return gathers ? gather(windows.group(r), fill(Gather{}))
                   : scatter(windows.group(r), fill(Scatter{}));
  };
  for (const bool gathers : {true, false}) {
    windows.all([&](int r) { return move(r, gathers, true); });
    const std::size_t first = windows.nccl().calls().size();
    windows.all([&](int r) { return move(r, gathers, true); });
    EXPECT_EQ(windows.in_windows(first), Windows::kRanks);
    const auto calls = windows.nccl().calls();
    for (std::size_t k = first; k < calls.size(); ++k) {
      if (!calls[k].in_windows) continue;
      const auto& [way, input, output, bytes, root, stream] = calls[k].pieces;
      EXPECT_EQ(way, gathers ? NcclPieces::Way::kGather : NcclPieces::Way::kScatter);
      EXPECT_EQ(input, at(calls[k].rank));
      EXPECT_EQ(output, at(calls[k].rank) + 2048);
      EXPECT_EQ(bytes, 32U);
      EXPECT_EQ(root, 1);
      EXPECT_NE(stream, nullptr);
    }
    const Status refused = move(0, gathers, false);
    EXPECT_FALSE(refused.is_ok());
    EXPECT_THAT(refused.message(), HasSubstr("null buffer"));
  }
}

// NCCL would fail, and the group with it.
TEST(NcclCopyEngineTest, TakesNoDefaultStream) {
  Windows windows;
  const auto memory = windows.allocate();
  for (const Status& refused : windows.each([&](int r) {
         auto* const data = static_cast<std::byte*>(memory[static_cast<std::size_t>(r)].data());
         return all_gather(windows.group(r), {.input = data + 2048,
                                              .output = data,
                                              .count = 32,
                                              .dtype = DataType::kUint8,
                                              .options = {.algorithm = "nccl_copy_engine"}});
       })) {
    EXPECT_EQ(refused.code(), StatusCode::kUnsupported);
    EXPECT_THAT(refused.message(), HasSubstr("other than the default stream"));
  }
  for (int r = 0; r < Windows::kRanks; ++r) EXPECT_TRUE(windows.group(r).status().is_ok());
}

// The other rank waits for the one that cannot, for half of its timeout.
TEST(NcclCopyEngineTest, IsLeftOutByOlderVersions) {
  Windows windows;
  const auto memory = windows.allocate();
  require_ok(windows.group(0).set_timeout(milliseconds(1000)));
  windows.nccl().fail_next("create", Status(StatusCode::kUnsupported, "too old"), 1);
  windows.all([&](int r) {
    return windows.group(r).impl().prepare_executor(kNcclExecutor, kNeedsNcclCopyEngines);
  });
  windows.world.set_timeout(kPatience);
  for (int r = 0; r < Windows::kRanks; ++r) {
    EXPECT_THAT(explain(windows.group(r), "all_gather", {.count = 64}),
                HasSubstr("there are none: rank 1: "));
  }
  for (const Status& status : windows.reduce(memory, "nccl_window")) require_ok(status);
}

}  // namespace
}  // namespace tutti::test
