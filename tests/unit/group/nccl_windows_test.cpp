// Windows of NCCL's: who has them and when, what becomes of them, and what their failures cost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "nccl_windows_group.hpp"

namespace tutti::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// ---- Who has them

TEST(NcclWindowsTest, NobodyHasThemUnasked) {
  Windows windows;
  const auto memory = windows.allocate();
  for (const Status& status : windows.reduce(memory, "nccl")) require_ok(status);
  windows.all([&](int r) { return windows.group(r).prepare_nccl(); });
  EXPECT_EQ(windows.nccl().open_communicators(), Windows::kRanks);
  EXPECT_EQ(windows.count("register_window"), 0);
}

// The memory was there before, and the row is named for the first time; or the other way round.
TEST(NcclWindowsTest, ACallThatNamesTheRowOpensThem) {
  Windows windows;
  const auto before = windows.allocate();
  for (const Status& status : windows.reduce(before, "nccl_window")) require_ok(status);
  EXPECT_EQ(windows.nccl().open_communicators(), 2 * Windows::kRanks);
  EXPECT_EQ(windows.nccl().open_windows(), Windows::kRanks);
  const auto after = windows.allocate();
  EXPECT_EQ(windows.nccl().open_windows(), 2 * Windows::kRanks);
  for (const auto* memory : {&before, &after}) {
    const std::size_t first = windows.nccl().calls().size();
    for (const Status& status : windows.reduce(*memory, "nccl_window")) require_ok(status);
    EXPECT_EQ(windows.in_windows(first), Windows::kRanks);
  }
}

// Their rows run on the same communicator, in place and not. Pieces that would begin between
// vectors on some ranks never come to NCCL.
TEST(NcclWindowsTest, WhatIsGatheredAndScatteredUsesThemToo) {
  Windows windows;
  const auto memory = windows.allocate();
  const auto gather_into = [&](int r, std::size_t input, std::size_t count) {
    auto* const data = static_cast<std::byte*>(memory[static_cast<std::size_t>(r)].data());
    return all_gather(windows.group(r), {.input = data + input,
                                         .output = data,
                                         .count = count,
                                         .dtype = DataType::kUint8,
                                         .stream = windows.world.stream(r),
                                         .options = {.algorithm = "nccl_window"}});
  };
  const auto scatter_into = [&](int r, std::size_t output) {
    auto* const data = static_cast<float*>(memory[static_cast<std::size_t>(r)].data());
    return reduce_scatter(windows.group(r), {.input = data,
                                             .output = data + output,
                                             .count = 8,
                                             .stream = windows.world.stream(r),
                                             .options = {.algorithm = "nccl_window"}});
  };
  const auto place = [](int r) { return static_cast<std::size_t>(r); };
  windows.all([&](int r) { return gather_into(r, 2048, 32); });
  EXPECT_EQ(windows.nccl().open_communicators(), 2 * Windows::kRanks);
  EXPECT_EQ(windows.in_windows(0), Windows::kRanks);
  windows.all([&](int r) { return gather_into(r, 32 * place(r), 32); });
  windows.all([&](int r) { return scatter_into(r, 512); });
  windows.all([&](int r) { return scatter_into(r, 8 * place(r)); });
  EXPECT_EQ(windows.in_windows(0), 4 * Windows::kRanks);
  // The watchdog asks for errors whenever it likes.
  const auto calls = [&] {
    const auto all = windows.nccl().calls();
    return std::count_if(all.begin(), all.end(),
                         [](const auto& call) { return call.name != "async_error"; });
  };
  const auto first = calls();
  for (const std::size_t input : {std::size_t{2048}, SIZE_MAX}) {
    for (const Status& refused : windows.each([&](int r) {
           return gather_into(r, input == SIZE_MAX ? 24 * place(r) : input, 24);
         })) {
      EXPECT_EQ(refused.code(), StatusCode::kUnsupported);
      EXPECT_THAT(refused.message(),
                  HasSubstr("a multiple of 16 bytes per rank, and there are 24"));
    }
  }
  EXPECT_EQ(calls(), first);
}

// NCCL decides by the buffers, so the row without windows needs a communicator that has none.
TEST(NcclWindowsTest, TheOtherRowStaysWithoutThemOnTheSameMemory) {
  Windows windows;
  windows.open();
  const auto memory = windows.allocate();
  for (const Status& status : windows.reduce(memory, "nccl_window")) require_ok(status);
  const std::size_t first = windows.nccl().calls().size();
  for (const Status& status : windows.reduce(memory, "nccl")) require_ok(status);
  EXPECT_EQ(windows.in_windows(first), 0);
}

TEST(NcclWindowsTest, OtherMemoryHasNone) {
  Windows windows;
  windows.open();
  for (int r = 0; r < Windows::kRanks; ++r) {
    AllReduce plain = windows.world.call(r);
    plain.options.algorithm = "nccl_window";
    const Status refused = all_reduce(windows.group(r), plain);
    EXPECT_EQ(refused.code(), StatusCode::kUnsupported);
    EXPECT_THAT(refused.message(), HasSubstr("memory that this communicator allocated"));
  }
  EXPECT_EQ(windows.nccl().open_windows(), 0) << "the communicator's own memory needs none";
}

TEST(NcclWindowsTest, OneThreadMayDriveAllRanks) {
  Windows windows;
  const auto memory = windows.allocate();
  for (int k = 0; k < 3; ++k) {  // the first opens them
    group_start();
    for (int r = 0; r < Windows::kRanks; ++r) {
      require_ok(all_reduce(windows.group(r), windows.call(memory, r, "nccl_window")));
    }
    require_ok(group_end());
  }
  EXPECT_EQ(windows.in_windows(0), 3 * Windows::kRanks);
}

// ---- Their life

TEST(NcclWindowsTest, MemoryFromThePoolKeepsItsWindow) {
  Windows windows;
  windows.open();
  for (int k = 0; k < 5; ++k) {
    const auto memory = windows.allocate(static_cast<std::size_t>(1000 * k + 4096));
    for (const Status& status : windows.reduce(memory, "nccl_window")) require_ok(status);
  }
  EXPECT_EQ(windows.count("register_window"), Windows::kRanks);
  EXPECT_EQ(windows.count("deregister_window"), 0);
}

// What is about to be unmapped has no window any more, whatever it is unmapped for.
TEST(NcclWindowsTest, TheyEndBeforeTheirMemory) {
  Windows windows;
  windows.open();
  std::atomic<int> ended = 0, mapped = 0;
  windows.nccl().on_deregister = [&](const std::byte* base) {
    ++ended;
    mapped += take(windows.world.cuda.pointer(base)).kind == CudaMemoryKind::kVirtual;
  };
  (void)windows.allocate(4 * MiB);
  (void)windows.allocate(6 * MiB);
  EXPECT_EQ(windows.nccl().open_windows(), 2 * Windows::kRanks);
  windows.world.cuda.fail("create_allocation", 0);  // so the pool is emptied
  const auto memory = windows.allocate(8 * MiB);
  EXPECT_EQ(ended, 2 * Windows::kRanks);
  EXPECT_EQ(mapped, ended);
  EXPECT_EQ(windows.nccl().open_windows(), Windows::kRanks);
  for (const Status& status : windows.reduce(memory, "nccl_window")) require_ok(status);
}

// Allocates, frees and fails to reuse a block: how many windows are left then.
int windows_after_a_failed_reuse(Windows& windows) {
  (void)windows.allocate();
  EXPECT_EQ(windows.nccl().open_windows(), Windows::kRanks);
  windows.world.cuda.fail("set_async", 0);
  for (const Status& status :
       windows.each([&](int r) { return windows.group(r).allocate(4096).status(); })) {
    EXPECT_FALSE(status.is_ok());
  }
  return windows.nccl().open_windows();
}

TEST(NcclWindowsTest, ABlockThatCannotBeZeroedGoesWithItsWindow) {
  Windows windows;
  windows.open();
  EXPECT_EQ(windows_after_a_failed_reuse(windows), 0);
}

// Without being told of it they would stay, over memory that is gone.
TEST(NcclWindowsTest, WhatTheHeapDoesNotTellOfStays) {
  Windows windows;
  windows.open();
  for (int r = 0; r < Windows::kRanks; ++r) windows.group(r).impl().heap()->on_unmap(nullptr);
  EXPECT_EQ(windows_after_a_failed_reuse(windows), Windows::kRanks);
}

TEST(NcclWindowsTest, TheyEndBeforeTheirCommunicator) {
  Windows windows;
  windows.open();
  const auto memory = windows.allocate();
  for (const Status& status : windows.reduce(memory, "nccl_window")) require_ok(status);
  windows.world.groups.clear();
  EXPECT_EQ(windows.nccl().open_communicators(), 0);
  EXPECT_EQ(windows.nccl().windows_left_behind(), 0);
  EXPECT_EQ(windows.count("deregister_window"), Windows::kRanks);
  EXPECT_EQ(windows.count("abort"), 0);
}

// An abort takes them along: what still runs on them must not lose its memory first.
TEST(NcclWindowsTest, AnAbortDoesNotTouchThem) {
  Windows windows;
  windows.open();
  const auto memory = windows.allocate();
  require_ok(all_reduce(windows.group(1), windows.call(memory, 1, "nccl_window")));
  windows.group(0).abort("enough");
  for (int r = 0; r < Windows::kRanks; ++r) {
    EXPECT_EQ(windows.world.failure_of(r).code(), StatusCode::kAborted);
  }
  windows.world.groups.clear();
  EXPECT_EQ(windows.nccl().open_communicators(), 0);
  EXPECT_EQ(windows.count("deregister_window"), 0);
  EXPECT_EQ(windows.count("abort"), 2 * Windows::kRanks);
}

TEST(NcclWindowsTest, WaitsOnThemAreWatchedToo) {
  Windows windows;
  windows.open();
  const auto memory = windows.allocate();
  windows.world.set_timeout(milliseconds(200));
  require_ok(all_reduce(windows.group(1), windows.call(memory, 1, "nccl_window")));
  const Status failure = windows.world.failure_of(1);
  EXPECT_EQ(failure.code(), StatusCode::kTimeout);
  EXPECT_THAT(failure.message(), HasSubstr("all_reduce/nccl_window #1"));
  EXPECT_EQ(windows.world.failure_of(0).code(), StatusCode::kTimeout);
}

// ---- Captures

TEST(NcclWindowsTest, NoneIsMadeInsideACapture) {
  Windows windows;
  const auto memory = windows.allocate();
  for (int r = 0; r < Windows::kRanks; ++r) {
    const Stream stream = windows.world.stream(r);
    require_ok(windows.world.cuda.begin_capture(stream));
    const Status refused = all_reduce(windows.group(r), windows.call(memory, r, "nccl_window"));
    EXPECT_EQ(refused.code(), StatusCode::kUnsupported);
    EXPECT_THAT(refused.message(), AllOf(HasSubstr("capture"), HasSubstr("prepare_nccl()")));
    require_ok(windows.world.cuda.destroy_graph(take(windows.world.cuda.end_capture(stream))));
  }
  EXPECT_EQ(windows.count("register_window"), 0);
}

// Graphs may be replayed while there are any, so the windows outlive the group.
TEST(NcclWindowsTest, GraphsKeepThem) {
  Windows windows;
  windows.open();
  auto memory = windows.allocate();
  std::array<CudaGraph, Windows::kRanks> graphs{};
  for (int r = 0; r < Windows::kRanks; ++r) {
    const Stream stream = windows.world.stream(r);
    require_ok(windows.world.cuda.begin_capture(stream));
    require_ok(all_reduce(windows.group(r), windows.call(memory, r, "nccl_window")));
    graphs[static_cast<std::size_t>(r)] = take(windows.world.cuda.end_capture(stream));
  }
  windows.world.groups.clear();
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(windows.nccl().open_windows(), Windows::kRanks);
  EXPECT_EQ(windows.count("deregister_window"), 0);
  for (const CudaGraph graph : graphs) require_ok(windows.world.cuda.destroy_graph(graph));
  EXPECT_TRUE(NcclGroup::wait_until([&] { return windows.nccl().open_communicators() == 0; }));
  EXPECT_EQ(windows.nccl().windows_left_behind(), 0);
}

// ---- Failures: the row is left out on every rank with one reason, and all else goes on

struct Failing {
  const char* step;
  int rank;  // -1: whoever comes first; unique_id knows no rank

  std::string name() const {
    return std::string(step) + "_of_" + (rank < 0 ? "any" : "rank_" + std::to_string(rank));
  }
  friend void PrintTo(const Failing& of, std::ostream* out) { *out << of.name(); }
};
class NcclWindowFailureTest : public ::testing::TestWithParam<Failing> {
 protected:
  static void expect_left_out(Windows& windows, const Windows::Memory& memory,
                              const std::string& reason) {
    for (const Status& status : windows.reduce(memory, "nccl_window")) {
      EXPECT_EQ(status.code(), StatusCode::kUnsupported) << status.to_string();
      EXPECT_THAT(status.message(), HasSubstr(reason));
    }
    for (int r = 0; r < Windows::kRanks; ++r) {
      EXPECT_TRUE(windows.group(r).status().is_ok()) << windows.group(r).status().to_string();
      EXPECT_THAT(windows.explanation(r), HasSubstr("there are none: " + reason));
    }
    for (const Status& status : windows.reduce(memory, "nccl")) require_ok(status);
    windows.world.groups.clear();
    EXPECT_EQ(windows.nccl().open_communicators(), 0);
    EXPECT_EQ(windows.nccl().windows_left_behind(), 0);
  }

  // Half of the timeout is for NCCL: so long the other rank waits in vain for `rank`, which waits
  // for it as long as that takes.
  template <class Step>
  static auto while_the_other_waits(Windows& windows, int rank, const Step& step) {
    for (int r = 0; r < Windows::kRanks; ++r) {
      if (r != rank) require_ok(windows.group(r).set_timeout(milliseconds(1000)));
    }
    auto result = step();
    windows.world.set_timeout(kPatience);
    return result;
  }
};

TEST_P(NcclWindowFailureTest, WhenTheyAreOpened) {
  const auto [step, rank] = GetParam();
  Windows windows;
  const auto memory = windows.allocate();
  windows.nccl().fail_next(step, Status(StatusCode::kNccl, "no more of it"), rank);
  while_the_other_waits(windows, rank, [&] {
    windows.open();
    return 0;
  });
  const std::string whose = "rank " + std::to_string(std::max(rank, 0));
  expect_left_out(windows, memory, whose);
}

// The last one registers, and the one before it as well: only what is in step is kept.
class LaterNcclWindowFailureTest : public NcclWindowFailureTest {};

TEST_P(LaterNcclWindowFailureTest, LeavesTheRowOutAsWell) {
  const auto [step, rank] = GetParam();
  Windows windows;
  windows.open();
  const auto first = windows.allocate();
  for (const Status& status : windows.reduce(first, "nccl_window")) require_ok(status);
  windows.nccl().fail_next(step, Status(StatusCode::kNccl, "no more of it"), rank);
  const auto second = while_the_other_waits(windows, rank, [&] { return windows.allocate(); });
  const auto third = windows.allocate();
  EXPECT_EQ(windows.count("register_window"), 2 * Windows::kRanks)
      << "once it has failed, none is made";
  expect_left_out(windows, rank == 0 ? first : second, "rank " + std::to_string(rank));
}

constexpr Failing kRegistrations[] = {{"register_window", 0}, {"register_window", 1}};
INSTANTIATE_TEST_SUITE_P(Ranks, LaterNcclWindowFailureTest, ::testing::ValuesIn(kRegistrations),
                         [](const auto& tested) { return tested.param.name(); });
INSTANTIATE_TEST_SUITE_P(Steps, NcclWindowFailureTest,
                         ::testing::Values(Failing{"unique_id", -1}, Failing{"create", 0},
                                           Failing{"create", 1}, Failing{"register_window", 0},
                                           Failing{"register_window", 1}),
                         [](const auto& tested) { return tested.param.name(); });

// Who has failed waits as long as the others may be in NCCL, or the group would fail.
TEST_F(NcclWindowFailureTest, HalfOfTheTimeoutIsForNccl) {
  Windows windows;
  windows.world.set_timeout(milliseconds(2000));
  windows.nccl().fail_next("create", Status(StatusCode::kNccl, "no more of it"), 0);
  windows.open();
  for (int r = 0; r < Windows::kRanks; ++r) EXPECT_TRUE(windows.group(r).status().is_ok());
}

// Without the failure none of that happens: what the tests above see is its work.
TEST_F(NcclWindowFailureTest, WithoutOneTheRowRuns) {
  Windows windows;
  const auto memory = windows.allocate();
  windows.open();
  for (const Status& status : windows.reduce(memory, "nccl_window")) require_ok(status);
  EXPECT_THAT(windows.explanation(0), Not(HasSubstr("there are none")));
}

TEST_F(NcclWindowFailureTest, MemoryThatNcclWouldNotTakeIsNotGivenToIt) {
  Windows windows(64 * KiB);
  const auto memory = windows.allocate();
  windows.open();
  EXPECT_EQ(windows.count("register_window"), 0);
  expect_left_out(windows, memory, "rank 0: unsupported: NCCL's windows begin and end at");
}

// A rank that hangs in NCCL does not keep an abort waiting.
TEST_F(NcclWindowFailureTest, AnAbortEndsTheWaitForTheOthers) {
  Windows windows;
  (void)windows.allocate();
  windows.nccl().fail_next("register_window", Status(StatusCode::kNccl, "no more of it"), 0);
  const auto answers = windows.each([&](int r) -> Status {
    if (r == 1) return windows.group(r).impl().prepare_executor(kNcclExecutor, kNeedsNcclWindows);
    std::jthread abort([&] {
      std::this_thread::sleep_for(milliseconds(100));
      windows.group(0).abort("not now");
    });
    return windows.group(r).impl().prepare_executor(kNcclExecutor, kNeedsNcclWindows);
  });
  for (const Status& answer : answers) EXPECT_EQ(answer.code(), StatusCode::kAborted);
  windows.world.groups.clear();
  EXPECT_EQ(windows.nccl().open_communicators(), 0);
}

// ---- Versions

// The oldest of the ranks counts, on every rank: what differs is agreed on at creation.
TEST(NcclWindowsTest, RanksWithDifferentNcclsChooseAlike) {
  FakeCuda cuda(std::make_shared<FakeCudaWorld>(Windows::kRanks));
  std::array<FakeNccl, Windows::kRanks> nccls;
  nccls[1].version_code = 22605;
  auto bootstraps = make_in_process_group(Windows::kRanks);
  std::array<std::string, Windows::kRanks> explained;
  on_all_ranks(Windows::kRanks, [&](int r) {
    const auto k = static_cast<std::size_t>(r);
    const Communicator group(take(CommunicatorImpl::create(std::move(bootstraps[k]),
                                                           {.backend = Backend::kCuda, .device = r},
                                                           {.cuda = &cuda, .nccl = &nccls[k]})));
    explained[k] = explain(group, "all_reduce", {.count = 100});
  });
  EXPECT_EQ(explained[0], explained[1]);
  EXPECT_THAT(explained[0], HasSubstr("needs NCCL 2.27 or newer on every rank, and the oldest is "
                                      "NCCL 2.26.5"));
}

}  // namespace
}  // namespace tutti::test
