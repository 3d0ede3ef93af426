// NCCL has no deadline of its own: what ends its waits, and what is said of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "group/recorder/find_pages.hpp"
#include "group/watchdog.hpp"
#include "nccl_group.hpp"

namespace tutti::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kShort{200};  // for deadlines that pass
constexpr auto kNotYet = NcclGroup::Nccl::kNotYet;

std::shared_ptr<std::atomic<bool>> closed_gate() {
  return std::make_shared<std::atomic<bool>>(false);
}

TEST(NcclTest, OperationsThatEndAreNoFailure) {
  NcclGroup world(2);
  for (int k = 0; k < 500; ++k) {
    for (int r = 0; r < 2; ++r) require_ok(world.reduce(r));
  }
  EXPECT_TRUE(NcclGroup::wait_until([&] { return world.idle(0) && world.idle(1); }));
  world.set_timeout(kShort);
  std::this_thread::sleep_for(2 * kShort);
  for (int r = 0; r < 2; ++r) {
    EXPECT_TRUE(world.group(r).status().is_ok()) << world.group(r).status().to_string();
  }
  world.groups.clear();
  EXPECT_EQ(world.nccl.open_communicators(), 0);
  EXPECT_EQ(world.cuda.open().events, 0U);
}

TEST(NcclTest, ARankThatNeverCallsEndsTheOthersWaits) {
  NcclGroup world(3);
  const auto start = Clock::now();
  for (const int r : {1, 2}) require_ok(world.reduce(r));
  world.set_timeout(kShort);
  for (const int r : {1, 2}) {
    const Status failure = world.failure_of(r);
    EXPECT_EQ(failure.code(), StatusCode::kTimeout) << failure.to_string();
    EXPECT_THAT(failure.message(),
                AllOf(HasSubstr("all_reduce/nccl #1 (1 x fp32, sum): rank "), HasSubstr("waited "),
                      HasSubstr("in NCCL"),
                      HasSubstr("(timeout 200 ms from Communicator::set_timeout())")));
    EXPECT_EQ(world.reduce(r).code(), StatusCode::kTimeout);
    EXPECT_EQ(world.group(r).prepare_nccl().code(), StatusCode::kTimeout);
  }
  EXPECT_GE(Clock::now() - start, kShort);
  EXPECT_EQ(world.failure_of(0).code(), StatusCode::kTimeout);
  world.groups.clear();
  EXPECT_EQ(world.nccl.open_communicators(), 0);
  EXPECT_EQ(world.nccl.ended_in_use(), 0);
}

constexpr const char* kRank0 = "rank 0 is at all_reduce/nccl #1 (1 x fp32, sum), which has ended";

// The rank that found it says who lags, once that rank has answered.
TEST(NcclTest, AWaitNamesTheRankThatLags) {
  NcclGroup world(3);
  for (int r = 0; r < 3; ++r) require_ok(world.reduce(r));
  for (const int r : {1, 2}) require_ok(world.reduce(r));
  world.set_timeout(kShort);
  for (const int r : {1, 2}) EXPECT_FALSE(world.failure_of(r).is_ok());
  // Its answer may come later than the failure.
  EXPECT_TRUE(
      NcclGroup::wait_until([&] { return world.says(1, kRank0) || world.says(2, kRank0); }));
  for (const int r : {1, 2}) {
    const std::string text = world.failure_of(r).message();
    EXPECT_THAT(text, HasSubstr("all_reduce/nccl #2"));
    // Rank 1 came as far as the others: where it is named, its abort was the quicker one.
    EXPECT_EQ(text.find("rank 1 is at all_reduce/nccl #1"), std::string::npos) << text;
  }
}

// By a copy into each rank's device, whether or not anybody answers.
TEST(NcclTest, WhoFindsAWaitIsPoisonedAsWhoIsTold) {
  NcclGroup world(2);
  unwatch(world.group(0).impl());
  const auto copies = [&] { return world.cuda.calls("copy_async"); };
  const int before = copies();
  for (const int r : {0, 1}) require_ok(world.reduce(r));
  EXPECT_TRUE(NcclGroup::wait_until([&] { return world.idle(0) && world.idle(1); }));
  EXPECT_EQ(copies(), before);
  require_ok(world.reduce(1, kShort));
  EXPECT_EQ(world.failure_of(1).code(), StatusCode::kTimeout);
  EXPECT_TRUE(NcclGroup::wait_until([&] { return copies() == before + 2; }));
}

// Without the watchdog nobody ends the wait: what the tests above see is its work.
TEST(NcclTest, WithoutTheWatchdogNobodyEndsTheWait) {
  NcclGroup world(2, kShort);
  for (Communicator& group : world.groups) unwatch(group.impl());
  require_ok(world.reduce(1));
  EXPECT_TRUE(world.failure_of(1, 3 * kShort).is_ok());
  EXPECT_FALSE(world.idle(1));
  for (Communicator& group : world.groups) require_ok(watch(group.impl()));
  EXPECT_EQ(world.failure_of(1).code(), StatusCode::kTimeout);
}

TEST(NcclTest, ALateRankThatComesInTimeIsNoFailure) {
  NcclGroup world(2);
  require_ok(world.reduce(1));
  std::this_thread::sleep_for(kShort);
  EXPECT_FALSE(world.idle(1));
  require_ok(world.reduce(0));
  EXPECT_TRUE(NcclGroup::wait_until([&] { return world.idle(1); }));
  EXPECT_TRUE(world.group(1).status().is_ok());
}

// The clock starts when the stream has come to the operation.
TEST(NcclTest, WorkOfTheUsersAheadIsNotLate) {
  NcclGroup world(2, kShort);
  const auto work = closed_gate();
  for (int r = 0; r < 2; ++r) world.cuda.add_gate(world.stream(r), work);
  for (int r = 0; r < 2; ++r) require_ok(world.reduce(r));
  std::this_thread::sleep_for(3 * kShort);
  for (int r = 0; r < 2; ++r) EXPECT_TRUE(world.group(r).status().is_ok());
  *work = true;
  for (int r = 0; r < 2; ++r) {
    EXPECT_TRUE(NcclGroup::wait_until([&] { return world.idle(r); }));
    EXPECT_TRUE(world.group(r).status().is_ok());
  }
}

// A rank whose stream is behind has called, and yet keeps the others waiting. (The stand-in's
// operation 2 waits for the call of rank 0, which comes too late.)
TEST(NcclTest, AStreamThatHasNotComeIsTold) {
  NcclGroup world(2);
  const auto work = closed_gate();
  world.cuda.add_gate(world.stream(0), work);
  for (int r = 0; r < 2; ++r) require_ok(world.reduce(r));
  require_ok(world.reduce(1, kShort));
  EXPECT_THAT(world.failure_of(1).message(), HasSubstr("rank 1 waited"));
  EXPECT_TRUE(NcclGroup::wait_until([&] {
    return world.says(1,
                      "rank 0 is at all_reduce/nccl #1 (1 x fp32, sum), to which its stream has "
                      "not come");
  })) << world.group(1).status().to_string();
  *work = true;
}

TEST(NcclTest, TheDeadlineOfOneCall) {
  NcclGroup world(2);
  require_ok(world.reduce(1, kShort));
  EXPECT_EQ(world.failure_of(1).code(), StatusCode::kTimeout);
}

TEST(NcclTest, ADeadlineThatIsChangedMeanwhile) {
  NcclGroup world(2);
  require_ok(world.reduce(1));
  std::this_thread::sleep_for(milliseconds(50));
  require_ok(world.group(1).set_timeout(kShort));
  EXPECT_EQ(world.failure_of(1).code(), StatusCode::kTimeout);
}

TEST(NcclTest, AnAbortElsewhereEndsTheOperation) {
  NcclGroup world(3);
  for (const int r : {1, 2}) require_ok(world.reduce(r));
  std::this_thread::sleep_for(milliseconds(50));
  world.group(0).abort("enough of it");
  for (const int r : {0, 1, 2}) {
    const Status failure = world.failure_of(r);
    EXPECT_EQ(failure.code(), StatusCode::kAborted) << failure.to_string();
    EXPECT_THAT(failure.message(), HasSubstr("enough of it"));
  }
}

TEST(NcclTest, ErrorsThatNcclNoticesAreReported) {
  NcclGroup world(2);
  for (int r = 0; r < 2; ++r) require_ok(world.reduce(r));
  world.nccl.fail_next("async_error", Status(StatusCode::kNccl, "the network is gone"));
  for (int r = 0; r < 2; ++r) {
    const Status failure = world.failure_of(r);
    EXPECT_EQ(failure.code(), StatusCode::kNccl) << failure.to_string();
    EXPECT_THAT(failure.message(),
                AllOf(HasSubstr("the network is gone"), HasSubstr("all_reduce/nccl #1")));
  }
}

TEST(NcclTest, ACallThatNcclRefusesFailsTheGroup) {
  NcclGroup world(2);
  world.nccl.fail_next("all_reduce", Status(StatusCode::kUnsupported, "too old"));
  EXPECT_EQ(world.reduce(0).code(), StatusCode::kUnsupported);
  EXPECT_TRUE(world.group(0).status().is_ok());
  world.nccl.fail_next("all_reduce", Status(StatusCode::kNccl, "no, thank you"));
  EXPECT_EQ(world.reduce(0).code(), StatusCode::kNccl);
  EXPECT_EQ(world.failure_of(1).code(), StatusCode::kNccl);
  EXPECT_EQ(world.reduce(0).code(), StatusCode::kNccl);
}

// A call that does not return, on a thread of its own.
TEST(NcclTest, CallsThatBlockAreTimedToo) {
  for (const bool can_interrupt : {true, false}) {
    NcclGroup world(2, kShort);
    world.nccl.can_interrupt = can_interrupt;
    world.nccl.hold_calls = true;
    on_all_ranks(2, [&](int rank) { EXPECT_EQ(world.reduce(rank).code(), StatusCode::kTimeout); });
    world.groups.clear();
    EXPECT_EQ(world.nccl.open_communicators(), 0);
    EXPECT_EQ(world.nccl.ended_in_use() == 0, can_interrupt);
  }
}

// ---- Set-up

TEST(NcclTest, SetUpHasTheDeadlineOfTheCommunicator) {
  NcclGroup world(2, kShort, kNotYet);
  world.nccl.hold_create = true;
  const auto start = Clock::now();
  on_all_ranks(2, [&](int rank) {
    EXPECT_EQ(world.group(rank).prepare_nccl().code(), StatusCode::kTimeout);
    EXPECT_EQ(world.group(rank).status().code(), StatusCode::kTimeout);
  });
  EXPECT_GE(Clock::now() - start, kShort);
}

TEST(NcclTest, SetUpEndsWhereAnotherRankCouldNot) {
  NcclGroup world(3, kPatience, kNotYet);
  world.nccl.hold_create = true;
  world.nccl.fail_next("create", Status(StatusCode::kNccl, "no devices"));
  on_all_ranks(3, [&](int rank) {
    const Status status = world.group(rank).prepare_nccl();
    EXPECT_EQ(status.code(), StatusCode::kNccl) << status.to_string();
    EXPECT_THAT(status.message(), HasSubstr("no devices"));
  });
}

TEST(NcclTest, SetUpEndsByAnAbort) {
  NcclGroup world(2, kPatience, kNotYet);
  world.nccl.hold_create = true;
  on_all_ranks(3, [&](int rank) {
    if (rank < 2) {
      EXPECT_EQ(world.group(rank).prepare_nccl().code(), StatusCode::kAborted);
    } else {
      std::this_thread::sleep_for(milliseconds(100));
      world.group(1).abort("not now");
    }
  });
}

TEST(NcclTest, ConnectingTheRanksHasADeadline) {
  NcclGroup world(2, kPatience, kNotYet);
  world.nccl.hold_calls = true;
  on_all_ranks(3, [&](int rank) {
    if (rank == 2) {  // once both are in a call
      const auto called = [&] {
        const auto calls = world.nccl.calls();
        return std::count_if(calls.begin(), calls.end(),
                             [](const auto& call) { return call.name == "all_reduce"; });
      };
      EXPECT_TRUE(NcclGroup::wait_until([&] { return called() == 2; }));
      return world.set_timeout(kShort);
    }
    const Status status = world.group(rank).prepare_nccl();
    EXPECT_EQ(status.code(), StatusCode::kTimeout) << status.to_string();
    EXPECT_THAT(status.message(), HasSubstr("prepare_nccl()"));
  });
}

// ---- The end

TEST(NcclTest, DestroyingOneInAnOperationTakesItsDeadline) {
  NcclGroup world(2, kShort);
  require_ok(world.reduce(1));
  world.groups.pop_back();
  EXPECT_TRUE(world.idle(1));
  EXPECT_EQ(world.failure_of(0).code(), StatusCode::kTimeout);
}

// NCCL keeps a communicator as long as there are graphs with its operations.
TEST(NcclTest, AGraphDoesNotHoldUpTheEnd) {
  NcclGroup world(2);
  for (int r = 0; r < 2; ++r) require_ok(world.cuda.begin_capture(world.stream(r)));
  for (int r = 0; r < 2; ++r) require_ok(world.reduce(r));
  const std::array graphs = {take(world.cuda.end_capture(world.stream(0))),
                             take(world.cuda.end_capture(world.stream(1)))};
  world.nccl.hold_endings = true;
  world.groups.clear();
  EXPECT_EQ(world.nccl.open_communicators(), 2);
  for (const CudaGraph graph : graphs) require_ok(world.cuda.destroy_graph(graph));
  world.nccl.hold_endings = false;
  EXPECT_TRUE(NcclGroup::wait_until([&] { return world.nccl.open_communicators() == 0; }));
}

// What a graph runs of NCCL's is not watched: whatever it is doing, the communicator is aborted.
TEST(NcclTest, AFailureEndsNcclWhateverItRuns) {
  NcclGroup world(2);
  world.group(0).abort("enough");
  EXPECT_TRUE(NcclGroup::wait_until([&] { return world.nccl.open_communicators() == 0; }));
}

// ---- Beside it

TEST(NcclTest, OneThreadDrivesAllRanks) {
  NcclGroup world(3);
  for (int k = 0; k < 10; ++k) {
    group_start();
    for (int r = 0; r < 3; ++r) require_ok(world.reduce(r));
    for (int r = 0; r < 3; ++r) require_ok(world.reduce(r));
    require_ok(group_end());
  }
  for (int r = 0; r < 3; ++r) {
    EXPECT_TRUE(NcclGroup::wait_until([&] { return world.idle(r); }));
    EXPECT_TRUE(world.group(r).status().is_ok());
  }
  EXPECT_EQ(world.nccl.group_depth(), 0);
  world.nccl.fail_next("group_end", Status(StatusCode::kNccl, "not together"));
  group_start();
  for (int r = 0; r < 3; ++r) require_ok(world.reduce(r));
  EXPECT_EQ(group_end().code(), StatusCode::kNccl);
  for (int r = 0; r < 3; ++r) EXPECT_EQ(world.group(r).status().code(), StatusCode::kNccl);
}

TEST(NcclTest, TheRecorderSeesOperationsEnd) {
  NcclGroup world(2);
  for (int r = 0; r < 2; ++r) require_ok(world.reduce(r));
  require_ok(world.reduce(1));
  const auto page = [&] {
    return *parse_page(*read_page(world.group(1).impl().recorder().descriptor()));
  };
  EXPECT_TRUE(
      NcclGroup::wait_until([&] { return page().operations[0].state == OperationState::kDone; }));
  EXPECT_EQ(page().operations[1].state, OperationState::kEnqueued);
  require_ok(world.reduce(0));
  EXPECT_TRUE(
      NcclGroup::wait_until([&] { return page().operations[1].state == OperationState::kDone; }));
}

// Everything at once, for ThreadSanitizer: nothing hangs, no communicator is freed in use.
TEST(NcclTest, FailuresMayComeFromEverywhereAtOnce) {
  for (int round = 0; round < 6; ++round) {
    NcclGroup world(2);
    on_all_ranks(6, [&](int thread) {
      const int rank = thread % 2;
      if (thread < 2) {
        while (world.reduce(rank).is_ok()) continue;
      } else if (thread < 4) {
        while (world.group(rank).status().is_ok()) (void)world.group(rank).set_timeout(kPatience);
      } else if (rank == round % 2) {
        std::this_thread::sleep_for(milliseconds(20));
        world.group(rank).abort("enough");
      } else {
        (void)world.group(rank).prepare_nccl();
      }
    });
    if (round % 3 == 0) world.groups.erase(world.groups.begin());
    world.groups.clear();
    EXPECT_EQ(world.nccl.open_communicators(), 0);
    EXPECT_EQ(world.nccl.ended_in_use(), 0);
  }
}

}  // namespace
}  // namespace tutti::test
