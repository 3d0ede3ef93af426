// Failures that are announced, and leaving: in groups whose ranks all live.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <latch>
#include <mutex>
#include <thread>

#include "support/patience.hpp"
#include "unit/bootstrap/groups.hpp"

namespace tutti {
namespace {

using namespace testing;

// Notes what a handler is told.
class Witness {
 public:
  Bootstrap::FailureHandler handler() {
    return [this](const GroupFailure& failure) {
      const std::lock_guard lock(mutex_);
      seen_.push_back(failure);
      changed_.notify_all();
    };
  }
  bool wait() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return !seen_.empty(); });
  }
  std::vector<GroupFailure> seen() {
    const std::lock_guard lock(mutex_);
    return seen_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<GroupFailure> seen_;
};

class Failures : public ::testing::TestWithParam<GroupKind> {};
INSTANTIATE_TEST_SUITE_P(Groups, Failures,
                         ::testing::Values(GroupKind::kInProcess, GroupKind::kLocal,
                                           GroupKind::kTcp),
                         [](const auto& parameter) { return name_of(parameter.param); });

TEST_P(Failures, AreToldToEveryOtherMemberTheFirstFirst) {
  constexpr int kAccounts = 10;  // more than anybody listens to
  with_group(GetParam(), 3, [](Bootstrap& group) {
    Witness witness;
    group.set_failure_handler(witness.handler());
    if (group.rank() == 1) {
      group.announce_failure({2, StatusCode::kCuda, "rank 2: its GPU fell off the bus"});
      for (int i = 0; i < kAccounts; ++i) {
        group.announce_failure({1, StatusCode::kCuda, "there is more to say"});
      }
    } else {
      EXPECT_TRUE(witness.wait());
    }
    const Status status = group.barrier(soon());
    EXPECT_EQ(status.code(), StatusCode::kCuda);
    EXPECT_EQ(status.message(), "rank 2: its GPU fell off the bus");
    group.set_failure_handler(nullptr);
    const auto seen = witness.seen();
    if (group.rank() == 1) {
      EXPECT_TRUE(seen.empty()) << "the announcer knows already";
    } else {
      EXPECT_EQ(seen.front().text, "rank 2: its GPU fell off the bus");
      EXPECT_LE(seen.size(), 4u);
    }
  });
}

TEST_P(Failures, EndWaitsAtOnceAlsoTheAnnouncersOwn) {
  std::latch over(2);
  with_group(GetParam(), 3, [&](Bootstrap& group) {
    if (group.rank() == 2) {
      auto waiting = std::async(std::launch::async, [&] { return group.barrier(soon()); });
      std::this_thread::sleep_for(50ms);
      group.announce_failure({2, StatusCode::kAborted, "abort() on rank 2"});
      EXPECT_EQ(waiting.get().code(), StatusCode::kAborted);
      over.count_down();
    } else if (group.rank() == 1) {
      EXPECT_EQ(group.barrier(soon()).code(), StatusCode::kAborted) << "and not kTimeout";
      over.count_down();
    } else {
      over.wait();  // is a member, and never comes
    }
  });
}

TEST_P(Failures, StayInTheirGroup) {
  with_group(GetParam(), 4, [](Bootstrap& group) {
    auto half = group.split(group.rank() % 2, 0, soon());
    ASSERT_TRUE(half.is_ok());
    Witness of_half, of_group;
    (*half)->set_failure_handler(of_half.handler());
    group.set_failure_handler(of_group.handler());
    if (group.rank() == 0) {
      (*half)->announce_failure({0, StatusCode::kAborted, "only the even ones"});
    }
    if (group.rank() == 2) {
      EXPECT_TRUE(of_half.wait());
    }
    EXPECT_TRUE(group.barrier(soon()).is_ok());
    EXPECT_EQ((*half)->barrier(soon()).is_ok(), group.rank() % 2 == 1);
    EXPECT_TRUE(group.barrier(soon()).is_ok());
    group.set_failure_handler(nullptr);
    (*half)->set_failure_handler(nullptr);
    EXPECT_TRUE(of_group.seen().empty());
    EXPECT_EQ(of_half.seen().size(), group.rank() == 2 ? 1u : 0u);
  });
}

// Rank 1 waits in the new group for rank 0, which hears of the failure first.
TEST_P(Failures, EndWhatIsSplitUntilItIsFound) {
  for (const bool found : {true, false}) {
    std::latch split(2), announced(2);
    with_group(GetParam(), 2, [&](Bootstrap& group) {
      auto part = group.split(0, 0, soon());
      ASSERT_TRUE(part.is_ok());
      if (found) (*part)->found();
      split.arrive_and_wait();
      if (group.rank() == 0) {
        group.announce_failure({0, StatusCode::kAborted, "abort() on rank 0"});
      } else {
        EXPECT_EQ(group.barrier(soon()).code(), StatusCode::kAborted);
      }
      announced.arrive_and_wait();
      EXPECT_EQ((*part)->barrier(soon()).code(), found ? StatusCode::kOk : StatusCode::kAborted);
    });
  }
}

TEST_P(Failures, AreToldToAHandlerThatComesLater) {
  with_group(GetParam(), 2, [](Bootstrap& group) {
    if (group.rank() == 0) {
      group.announce_failure({0, StatusCode::kAborted, "early"});
    } else {
      EXPECT_EQ(group.barrier(soon()).code(), StatusCode::kAborted);  // has come
      Witness witness;
      group.set_failure_handler(witness.handler());
      EXPECT_TRUE(witness.wait());
      group.set_failure_handler(nullptr);
    }
  });
}

TEST_P(Failures, AfterClearNoHandlerRuns) {
  with_group(GetParam(), 2, [](Bootstrap& group) {
    if (group.rank() == 0) {
      group.announce_failure({0, StatusCode::kAborted, "now"});
      return;
    }
    std::promise<void> entered;
    std::atomic<bool> left{false};
    group.set_failure_handler([&](const GroupFailure&) {
      entered.set_value();
      std::this_thread::sleep_for(100ms);
      left = true;
    });
    ASSERT_EQ(entered.get_future().wait_for(kPatience), std::future_status::ready);
    group.set_failure_handler(nullptr);
    EXPECT_TRUE(left) << "the call in progress must have ended";
  });
}

// A handler that takes the caller's lock, while the caller holds it around a call of the group.
TEST_P(Failures, HandlersAreCalledUnderNoLock) {
  with_group(GetParam(), 2, [](Bootstrap& group) {
    if (group.rank() == 0) {
      group.announce_failure({0, StatusCode::kAborted, "now"});
      return;
    }
    std::mutex callers;
    Witness witness;
    group.set_failure_handler([&](const GroupFailure& failure) {
      const std::lock_guard lock(callers);
      witness.handler()(failure);
    });
    for (int i = 0; i < 100; ++i) {
      const std::lock_guard lock(callers);
      static_cast<void>(group.departed());
      group.announce_failure({1, StatusCode::kAborted, "answer"});
    }
    group.set_failure_handler(nullptr);
  });
}

TEST_P(Failures, LongTextsAreCut) {
  with_group(GetParam(), 2, [](Bootstrap& group) {
    if (group.rank() == 0) {
      group.announce_failure({0, StatusCode::kAborted, std::string(1 << 20, 'x')});
    } else {
      const Status status = group.barrier(soon());
      EXPECT_EQ(status.code(), StatusCode::kAborted);
      EXPECT_LE(status.message().size(), 4096u);
    }
  });
}

TEST_P(Failures, LeavingIsNone) {
  std::latch over(3);
  with_group(GetParam(), 3, [&](Bootstrap& group) {
    Witness witness;
    group.set_failure_handler(witness.handler());
    EXPECT_EQ(group.departed(), -1);
    ASSERT_TRUE(group.barrier(soon()).is_ok());
    if (group.rank() == 1) {
      group.leave({});
      group.leave({});
    } else {
      const Status status = group.barrier(soon());
      EXPECT_EQ(status.code(), StatusCode::kPeerFailed);
      EXPECT_NE(status.message().find("rank 1 has left"), std::string::npos) << status.message();
      EXPECT_EQ(group.departed(), 1);
    }
    over.arrive_and_wait();
    group.set_failure_handler(nullptr);
    EXPECT_TRUE(witness.seen().empty());
  });
}

// Behind a failure that was told before, also to a handler that is set late; once.
TEST_P(Failures, WhoLeavesSaysWhen) {
  with_group(GetParam(), 3, [](Bootstrap& group) {
    auto copy = group.split(0, 0, soon());
    ASSERT_TRUE(copy.is_ok());
    if (group.rank() == 1) {
      (*copy)->announce_failure({1, StatusCode::kCuda, "it failed"});
      (*copy)->leave("after all_reduce #41");
      (*copy)->leave("after all_reduce #42");
    }
    if (group.rank() == 2) (*copy)->leave({});
    ASSERT_TRUE(group.barrier(soon()).is_ok());
    if (group.rank() == 0) {
      Witness witness;
      std::promise<std::string> heard;
      (*copy)->set_leave_handler([&](int rank, const std::string& last) {
        heard.set_value(fmt::format("rank {} {}, {} failed", rank, last, witness.seen().size()));
      });
      (*copy)->set_failure_handler(witness.handler());
      auto words = heard.get_future();
      ASSERT_EQ(words.wait_for(kPatience), std::future_status::ready);
      EXPECT_EQ(words.get(), "rank 1 after all_reduce #41, 1 failed");
      (*copy)->set_failure_handler(nullptr);
    }
    EXPECT_TRUE(group.barrier(soon()).is_ok());
  });
}

TEST_P(Failures, WhoHasLeftIsNamedWithItsLastWords) {
  with_group(GetParam(), 2, [](Bootstrap& group) {
    auto copy = group.split(0, 0, soon());
    ASSERT_TRUE(copy.is_ok());
    if (group.rank() == 1) (*copy)->leave("after all_reduce #41" + std::string(5000, '.'));
    if (group.rank() == 0) {
      const Status status = (*copy)->barrier(soon());
      EXPECT_EQ(status.code(), StatusCode::kPeerFailed);
      EXPECT_THAT(status.message(),
                  ::testing::StartsWith("rank 1 has left the group after all_reduce #41..."));
      EXPECT_LT(status.message().size(), 4300u);
    }
    EXPECT_TRUE(group.barrier(soon()).is_ok());
  });
}

// What was sent before leaving counts.
TEST_P(Failures, LeavingRightAfterACallHurtsNobody) {
  with_group(GetParam(), 4, [](Bootstrap& group) {
    for (int round = 0; round < 30; ++round) {
      auto copy = group.split(0, 0, soon());
      ASSERT_TRUE(copy.is_ok());
      const auto parts = (*copy)->all_gather(pattern(group.rank(), 10'000), soon());
      EXPECT_TRUE(parts.is_ok()) << parts.status().to_string();
    }
  });
}

// Its threads are not there, and nobody may wait for them.
TEST_P(Failures, AForkedChildMayDestroyAGroupThatHasFailed) {
  with_group(GetParam(), 2, [](Bootstrap& group) {
    Witness witness;
    auto copy = group.split(0, 0, soon());
    ASSERT_TRUE(copy.is_ok());
    (*copy)->set_failure_handler(witness.handler());
    if (group.rank() == 0) {
      (*copy)->announce_failure({0, StatusCode::kAborted, "now"});
      return;
    }
    EXPECT_TRUE(witness.wait());
    const pid_t child = ::fork();
    if (child == 0) {
      copy->reset();
      ::_exit(7);
    }
    int status = 0;
    const Deadline deadline = soon();
    while (::waitpid(child, &status, WNOHANG) == 0 && !deadline.passed()) {
      std::this_thread::sleep_for(1ms);
    }
    ::kill(child, SIGKILL);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    (*copy)->set_failure_handler(nullptr);
  });
}

TEST_P(Failures, ASubgroupMayBeLeftWhileItsParentLives) {
  std::latch over(3);
  with_group(GetParam(), 3, [&](Bootstrap& group) {
    auto copy = group.split(0, 0, soon());
    ASSERT_TRUE(copy.is_ok());
    if (group.rank() == 0) copy->reset();
    EXPECT_TRUE(group.barrier(soon()).is_ok());
    if (group.rank() != 0) {
      EXPECT_EQ((*copy)->departed(), 0);
      EXPECT_EQ(group.departed(), -1);
    }
    EXPECT_TRUE(group.barrier(soon()).is_ok());
    over.arrive_and_wait();
  });
}

}  // namespace
}  // namespace tutti
