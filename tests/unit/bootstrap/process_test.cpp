// Ranks as processes: they die, they stop, they fork.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <thread>

#include "fakes/fake_sockets.hpp"
#include "unit/bootstrap/groups.hpp"

namespace tutti {
namespace {

using namespace testing;

class Processes : public ::testing::TestWithParam<GroupKind> {
 protected:
  // A child that joins as `rank` and then runs `body`.
  using Body = std::function<std::string(Bootstrap&, const ForkedRank::Say&)>;
  ForkedRank start(int rank, int size, const Body& body) {
    return ForkedRank([=, this](const ForkedRank::Say& say) {
      JoinOptions options = options_in(directory_);
      options.sockets = sockets_;
      auto group = join_group_with(id_, rank, size, soon(), options);
      if (!group.is_ok()) return group.status().to_string();
      return body(**group, say);
    });
  }
  void lose_a_rank_whose_child_lives_on(SocketDriver& sockets);

  const TemporaryDirectory directory_;
  const GroupId id_ = make_id(GetParam());
  SocketDriver* sockets_ = &real_sockets();
};
INSTANTIATE_TEST_SUITE_P(Groups, Processes, ::testing::Values(GroupKind::kLocal, GroupKind::kTcp),
                         [](const auto& parameter) { return name_of(parameter.param); });

std::string gather_and_check(Bootstrap& group, std::size_t bytes) {
  const auto parts = group.all_gather(pattern(group.rank(), bytes), soon());
  if (!parts.is_ok()) return parts.status().to_string();
  for (int r = 0; r < group.size(); ++r) {
    if (!is_pattern((*parts)[r], r, bytes)) return "wrong bytes from rank " + std::to_string(r);
  }
  return "";
}

std::string swap_files(Bootstrap& group) {
  const Fd mine = file_with("of rank " + std::to_string(group.rank()));
  const std::vector<std::vector<int>> outgoing(group.size(), {mine.get()});
  const auto incoming = group.exchange_descriptors(outgoing, soon());
  if (!incoming.is_ok()) return incoming.status().to_string();
  for (int r = 0; r < group.size(); ++r) {
    if (content_of((*incoming)[r].at(0).get()) != "of rank " + std::to_string(r)) {
      return "wrong file from rank " + std::to_string(r);
    }
  }
  return "";
}

TEST_P(Processes, GatherAndExchange) {
  for (const int size : {2, 3, 8}) {
    std::vector<ForkedRank> ranks;
    for (int rank = 0; rank < size; ++rank) {
      ranks.push_back(start(rank, size, [](Bootstrap& group, const ForkedRank::Say&) {
        for (const std::size_t bytes : {0, 1, 300'000}) {
          if (auto wrong = gather_and_check(group, bytes); !wrong.empty()) return wrong;
        }
        return swap_files(group);
      }));
    }
    for (ForkedRank& rank : ranks) EXPECT_EQ(rank.complaint(), "");
  }
  EXPECT_TRUE(directory_.entries().empty());
}

TEST_P(Processes, MixWithThreads) {
  // Two processes of two ranks each.
  std::vector<ForkedRank> processes;
  for (int process = 0; process < 2; ++process) {
    processes.emplace_back([=, this](const ForkedRank::Say&) {
      std::array<std::string, 2> wrong;
      run_threads(2, [&](int thread) {
        auto group = join_group_with(id_, 2 * process + thread, 4, soon(), options_in(directory_));
        wrong[thread] = text_of(group);
        if (!group.is_ok()) return;
        wrong[thread] = gather_and_check(**group, 1000) + swap_files(**group);
        const auto& who = (*group)->identities();
        if (who[0].process_token != who[1].process_token ||
            who[1].process_token == who[2].process_token || who[0].host_id != who[3].host_id) {
          wrong[thread] += " wrong identities";
        }
      });
      return wrong[0] + wrong[1];
    });
  }
  for (ForkedRank& process : processes) EXPECT_EQ(process.complaint(), "");
  EXPECT_TRUE(directory_.entries().empty());
}

TEST_P(Processes, ADeathBetweenCallsReachesTheHandler) {
  const auto dies = [](Bootstrap& group, const ForkedRank::Say& say) {
    if (const Status status = group.barrier(soon()); !status.is_ok()) return status.to_string();
    say("ready");
    return wait_to_be_killed();
  };
  const auto watch = [](Bootstrap& group, const ForkedRank::Say& say) {
    std::promise<GroupFailure> told;
    group.set_failure_handler([&](const GroupFailure& failure) { told.set_value(failure); });
    if (const Status status = group.barrier(soon()); !status.is_ok()) return status.to_string();
    say("ready");
    auto failure = told.get_future();
    if (failure.wait_for(kPatience) != std::future_status::ready) return std::string("deaf");
    say("noticed");
    group.set_failure_handler(nullptr);
    const GroupFailure what = failure.get();
    if (what.rank != 1 || what.code != StatusCode::kPeerFailed) return "wrong: " + what.text;
    const Status later = group.barrier(soon());
    return later.code() == StatusCode::kPeerFailed ? std::string() : later.to_string();
  };
  ForkedRank zero = start(0, 3, watch), victim = start(1, 3, dies), two = start(2, 3, watch);
  for (ForkedRank* rank : {&zero, &victim, &two}) ASSERT_EQ(rank->line(), "ready");
  victim.signal(SIGKILL);
  EXPECT_EQ(zero.line(), "noticed");
  EXPECT_EQ(two.line(), "noticed");
  EXPECT_EQ(zero.complaint(), "");
  EXPECT_EQ(two.complaint(), "");
}

TEST_P(Processes, ADeathInsideACallEndsIt) {
  const auto gather = [](Bootstrap& group, const ForkedRank::Say& say) {
    say("ready");
    const Status status = group.barrier(soon());
    if (status.code() != StatusCode::kPeerFailed ||
        status.message().find("rank 1 is gone") == std::string::npos) {
      return "wrong: " + status.to_string();
    }
    return std::string();
  };
  const auto never = [](Bootstrap&, const ForkedRank::Say& say) {
    say("ready");
    return wait_to_be_killed();
  };
  ForkedRank zero = start(0, 3, gather), victim = start(1, 3, never), two = start(2, 3, gather);
  for (ForkedRank* rank : {&zero, &victim, &two}) ASSERT_EQ(rank->line(), "ready");
  std::this_thread::sleep_for(50ms);  // into the call
  victim.signal(SIGKILL);
  EXPECT_EQ(zero.complaint(), "");
  EXPECT_EQ(two.complaint(), "");
}

// Rank 1 is let in and dies while rank 3 is still awaited.
TEST_P(Processes, ADeathWhileTheGroupFormsIsNamed) {
  const auto fails = [this](int rank, std::chrono::milliseconds limit) {
    return ForkedRank([=, this](const ForkedRank::Say& say) {
      say("started");
      const auto group = join_group_with(id_, rank, 4, Deadline(limit), options_in(directory_));
      if (group.status().code() == StatusCode::kTimeout) return std::string("not yet");
      const bool named = group.status().code() == StatusCode::kPeerFailed &&
                         group.status().message().find("rank 1") != std::string::npos;
      return named ? std::string() : "wrong: " + text_of(group);
    });
  };
  EXPECT_TRUE(with_longer_limits([&](std::chrono::milliseconds limit) {
    ForkedRank zero = fails(0, 4 * limit), victim = fails(1, 4 * limit), two = fails(2, 4 * limit);
    for (ForkedRank* rank : {&zero, &victim, &two}) EXPECT_EQ(rank->line(), "started");
    std::this_thread::sleep_for(limit);  // for the others to meet it
    victim.signal(SIGKILL);
    const std::string first = zero.complaint(), second = two.complaint();
    if (first == "not yet" || second == "not yet") return false;
    EXPECT_EQ(first, "");
    EXPECT_EQ(second, "");
    return true;
  }));
  EXPECT_TRUE(directory_.entries().empty()) << "left behind: " << directory_.entries().front();
}

TEST_P(Processes, AStoppedPeerIsNamedByTheTimeout) {
  // The two that are awake must hear from each other by then.
  EXPECT_TRUE(with_longer_limits([&](std::chrono::milliseconds limit) {
    SharedFlag stopped;
    const auto gather = [&](Bootstrap& group, const ForkedRank::Say&) {
      if (const Status status = group.barrier(soon()); !status.is_ok()) return status.to_string();
      stopped.wait();
      // More than a socket holds: sending must not hang either.
      const auto parts = group.all_gather(Bytes(4'000'000), Deadline(limit));
      const std::string text = parts.status().to_string();
      if (parts.status().code() != StatusCode::kTimeout) return "wrong: " + text;
      const bool named = text.find("did not hear from rank 1 of 3") != std::string::npos;
      return named ? std::string() : "not yet";
    };
    const auto stop = [](Bootstrap& group, const ForkedRank::Say& say) {
      if (const Status status = group.barrier(soon()); !status.is_ok()) return status.to_string();
      say("ready");
      return wait_to_be_killed();
    };
    ForkedRank zero = start(0, 3, gather), victim = start(1, 3, stop), two = start(2, 3, gather);
    EXPECT_EQ(victim.line(), "ready");
    victim.signal(SIGSTOP);
    stopped.set();
    const std::string first = zero.complaint(), second = two.complaint();
    if (first == "not yet" || second == "not yet") return false;
    EXPECT_EQ(first, "");
    EXPECT_EQ(second, "");
    return true;
  }));
}

// Beyond the deadline: as a laptop that is shut, or a container that is frozen.
void stop_together(const std::vector<ForkedRank>& ranks, std::chrono::milliseconds limit) {
  for (const ForkedRank& rank : ranks) rank.signal(SIGSTOP);
  std::this_thread::sleep_for(limit + limit / 10);
  for (const ForkedRank& rank : ranks) rank.signal(SIGCONT);
  std::this_thread::sleep_for(limit / 10);  // for them to see how late it is
}

// Rank 0 comes once all have been woken.
TEST_P(Processes, StoppedTogetherTheyGoOn) {
  EXPECT_TRUE(with_longer_limits([&](std::chrono::milliseconds limit) {
    SharedFlag awake;
    const auto gather = [&](Bootstrap& group, const ForkedRank::Say& say) {
      say("ready");
      if (group.rank() == 0) awake.wait();
      return text_of(group.all_gather(Bytes(4'000'000), Deadline(limit)));
    };
    std::vector<ForkedRank> ranks;
    for (const int rank : {0, 1, 2}) ranks.push_back(start(rank, 3, gather));
    for (ForkedRank& rank : ranks) EXPECT_EQ(rank.line(), "ready");
    std::this_thread::sleep_for(limit / 10);  // into the call
    stop_together(ranks, limit);
    awake.set();
    return std::all_of(ranks.begin(), ranks.end(),
                       [](ForkedRank& rank) { return rank.complaint().empty(); });
  }));
}

TEST_P(Processes, StoppedTogetherWhileTheyMeetTheyGoOn) {
  EXPECT_TRUE(with_longer_limits([&](std::chrono::milliseconds limit) {
    SharedFlag awake;
    std::vector<ForkedRank> ranks;
    for (const int rank : {0, 1, 2}) {
      ranks.emplace_back([&, rank](const ForkedRank::Say& say) {
        say("ready");
        if (rank == 0) awake.wait();
        return text_of(join_group_with(id_, rank, 3, Deadline(limit), options_in(directory_)));
      });
    }
    for (ForkedRank& rank : ranks) EXPECT_EQ(rank.line(), "ready");
    std::this_thread::sleep_for(limit / 10);
    stop_together(ranks, limit);
    awake.set();
    return std::all_of(ranks.begin(), ranks.end(),
                       [](ForkedRank& rank) { return rank.complaint().empty(); });
  }));
}

TEST_P(Processes, LeavingAndThenEndingIsNoFailure) {
  SharedFlag over;
  const auto stay = [&](Bootstrap& group, const ForkedRank::Say& say) {
    std::atomic<int> told{0};
    group.set_failure_handler([&](const GroupFailure&) { ++told; });
    if (const Status status = group.barrier(soon()); !status.is_ok()) return status.to_string();
    const Deadline deadline = soon();
    while (group.departed() < 0 && !deadline.passed()) std::this_thread::sleep_for(1ms);
    say("saw it leave");
    over.wait();
    std::this_thread::sleep_for(50ms);  // for what must not come
    group.set_failure_handler(nullptr);
    return told == 0 && group.departed() == 1 ? std::string() : "told of a failure";
  };
  const auto leave = [](Bootstrap& group, const ForkedRank::Say&) {
    if (const Status status = group.barrier(soon()); !status.is_ok()) return status.to_string();
    group.leave({});
    ::_exit(0);  // no destructor, no goodbye
    return std::string();
  };
  ForkedRank zero = start(0, 2, stay), one = start(1, 2, leave);
  EXPECT_EQ(zero.line(), "saw it leave");
  EXPECT_EQ(one.line(), "(ended)");
  over.set();
  EXPECT_EQ(zero.complaint(), "");
}

// The processes of a group that are all killed while it forms leave its folder behind, and the next
// group of any name takes it down.
TEST(ProcessesOfTwoGroups, WhatTheOneLeavesTheNextTakesDown) {
  const TemporaryDirectory directory;
  const GroupId first = *GroupId::local(), second = *GroupId::local();
  {
    std::vector<ForkedRank> ranks;
    ranks.reserve(2);
    for (int rank = 0; rank < 2; ++rank) {
      ranks.emplace_back([&, rank](const ForkedRank::Say&) {  // rank 2 never comes
        return text_of(join_group_with(first, rank, 3, soon(), options_in(directory)));
      });
    }
    const Deadline deadline = soon();
    while (directory.entries().size() < 3 && !deadline.passed()) std::this_thread::sleep_for(1ms);
    // Stopped before the first is killed: one that saw the other die would take the folder down.
    for (const int signal : {SIGSTOP, SIGKILL}) {
      for (const ForkedRank& rank : ranks) rank.signal(signal);
    }
  }
  ASSERT_EQ(directory.entries().size(), 3u);  // the folder, and a socket of each
  namespace fs = std::filesystem;
  const auto an_hour_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
  for (const auto& folder : fs::directory_iterator(directory.path())) {
    fs::last_write_time(folder.path(), an_hour_ago);
  }
  run_threads(2, [&](int rank) {
    EXPECT_NE(join_or_fail(second, rank, 2, options_in(directory)), nullptr);
  });
  EXPECT_TRUE(directory.entries().empty()) << "left behind: " << directory.entries().front();
}

// The dead rank's child still holds its connections; the end of its process is noticed all the
// same.
TEST_P(Processes, ADeathIsNoticedThoughAForkedChildLivesOn) {
  FakeSockets old_kernel(real_sockets());
  old_kernel.can_watch_processes = false;  // then /proc tells
  for (SocketDriver* sockets : {&real_sockets(), static_cast<SocketDriver*>(&old_kernel)}) {
    lose_a_rank_whose_child_lives_on(*sockets);
  }
}

void Processes::lose_a_rank_whose_child_lives_on(SocketDriver& sockets) {
  const auto fork_and_wait = [](Bootstrap& group, const ForkedRank::Say& say) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(3600);  // if the test does not come to its end
      ::pause();
      ::_exit(0);
    }
    if (const Status status = group.barrier(soon()); !status.is_ok()) return status.to_string();
    say(std::to_string(child));
    return wait_to_be_killed();
  };
  const auto gather = [](Bootstrap& group, const ForkedRank::Say& say) {
    if (const Status status = group.barrier(soon()); !status.is_ok()) return status.to_string();
    say("ready");
    const Status status = group.barrier(soon());
    return status.code() == StatusCode::kPeerFailed ? std::string() : status.to_string();
  };
  sockets_ = &sockets;
  ForkedRank zero = start(0, 2, gather), victim = start(1, 2, fork_and_wait);
  ASSERT_EQ(zero.line(), "ready");
  const pid_t child = std::atoi(victim.line().c_str());
  ASSERT_GT(child, 0);
  victim.signal(SIGKILL);
  EXPECT_EQ(zero.complaint(), "");
  EXPECT_EQ(::kill(child, SIGKILL), 0) << "the child should have lived through the test";
}

// A forked child that destroys what it has inherited neither hangs nor speaks for its parent.
TEST_P(Processes, AForkedChildMayDestroyItsCopy) {
  const auto fork_and_destroy = [this](int rank) {
    return ForkedRank([=, this](const ForkedRank::Say&) {
      auto group = join_group_with(id_, rank, 2, soon(), options_in(directory_));
      if (!group.is_ok()) return text_of(group);
      const pid_t child = ::fork();
      if (child == 0) {
        (*group)->leave({});
        group->reset();
        ::_exit(7);
      }
      int status = 0;
      const Deadline deadline = soon();
      while (::waitpid(child, &status, WNOHANG) == 0) {
        if (deadline.passed()) return std::string("the child hangs");
        std::this_thread::sleep_for(1ms);
      }
      if (!WIFEXITED(status) || WEXITSTATUS(status) != 7) return std::string("the child crashed");
      return text_of((*group)->barrier(soon()));
    });
  };
  ForkedRank zero = fork_and_destroy(0), one = fork_and_destroy(1);
  EXPECT_EQ(zero.complaint(), "");
  EXPECT_EQ(one.complaint(), "");
}

}  // namespace
}  // namespace tutti
