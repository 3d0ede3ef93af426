// Groups that go on without the ranks that were lost: as threads, and as processes that are killed
// and stopped.
#include <signal.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <chrono>
#include <cstdint>
#include <latch>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/check.hpp"
#include "support/group.hpp"
#include "support/ranks.hpp"
#include "tutti/collectives.hpp"
#include "unit/bootstrap/ranks.hpp"

namespace tutti::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using testing::ForkedRank;
using testing::SharedFlag;

using std::chrono::milliseconds;

Result<std::int64_t> sum_over(Communicator& group, std::int64_t mine) {
  std::int64_t sum = 0;
  const Status status =
      all_reduce(group, {.input = &mine, .output = &sum, .count = 1, .dtype = DataType::kInt64});
  if (!status.is_ok()) return status;
  return sum;
}

// Calls body(group, rank) on a thread per rank.
template <class Body>
void with_ranks(int ranks, const Body& body) {
  auto groups = take(Communicator::create_in_process(ranks, kOnHost));
  on_all_ranks(ranks, [&](int rank) { body(groups[static_cast<std::size_t>(rank)], rank); });
}

TEST(ShrinkTest, OfAGroupThatHasNotFailedIsACopy) {
  with_ranks(3, [](Communicator& group, int rank) {
    const Survivors survivors = take(group.shrink());
    EXPECT_THAT(survivors.missing, IsEmpty());
    EXPECT_EQ(survivors.communicator->rank(), rank);
    EXPECT_EQ(take(sum_over(*survivors.communicator, rank)), 3);
    EXPECT_EQ(take(sum_over(group, 1)), 3) << "the old group goes on";
  });
}

TEST(ShrinkTest, AfterAnAbortHasNewMemoryAndCanShrinkAgain) {
  std::barrier all_are_done(3);
  with_ranks(3, [&](Communicator& group, int) {
    std::unique_ptr<Communicator> latest;
    for (int time = 0; time < 3; ++time) {
      all_are_done.arrive_and_wait();
      Communicator& old = latest == nullptr ? group : *latest;
      old.abort("enough");
      Survivors survivors = take(old.shrink());
      EXPECT_THAT(survivors.missing, IsEmpty());
      EXPECT_EQ(old.status().code(), StatusCode::kAborted) << "it stays failed";
      latest = std::move(survivors.communicator);
      EXPECT_TRUE(take(latest->allocate(1000)).zero_copy());
      EXPECT_EQ(take(sum_over(*latest, 1)), 3);
    }
  });
}

TEST(ShrinkTest, WhoHasLeftOrIsLateIsMissing) {
  auto groups = take(Communicator::create_in_process(4, kOnHost));
  std::latch over(2);
  std::barrier both_come(2);
  on_all_ranks(4, [&](int rank) {
    Communicator& group = groups[static_cast<std::size_t>(rank)];
    if (rank == 0) {
      const Communicator leaves = std::move(group);
      return;
    }
    if (rank == 2) {  // comes once all is over
      over.wait();
      const auto late = group.shrink();
      EXPECT_EQ(late.status().code(), StatusCode::kPeerFailed);
      EXPECT_THAT(late.status().message(), HasSubstr("went on without rank 2"));
      EXPECT_EQ(group.shrink().status().code(), StatusCode::kPeerFailed) << "for good";
      EXPECT_EQ(sum_over(group, 1).status().code(), StatusCode::kPeerFailed);
      return;
    }
    both_come.arrive_and_wait();
    const Survivors survivors = take(group.shrink(milliseconds(1000)));
    EXPECT_THAT(survivors.missing, ElementsAre(0, 2));
    EXPECT_EQ(survivors.communicator->rank(), rank == 1 ? 0 : 1);
    EXPECT_EQ(take(sum_over(*survivors.communicator, rank)), 4);
    EXPECT_EQ(group.status().code(), StatusCode::kPeerFailed) << "not complete any more";
    over.count_down();
  });
}

TEST(ShrinkTest, RefusesANegativeDeadline) {
  with_ranks(1, [](Communicator& group, int) {
    EXPECT_EQ(group.shrink(milliseconds(-1)).status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(take(group.shrink()).communicator->size(), 1);
  });
}

// One of a group of processes, each known by a bit: they add up their bits until the parent says
// that it is over, and shrink whenever somebody is lost.
std::string live_on(const UniqueId& id, int rank, int size, const SharedFlag& over,
                    const ForkedRank::Say& say) {
  auto made = Communicator::create(id, rank, size, kOnHost);
  if (!made.is_ok()) return made.status().to_string();
  auto group = std::make_unique<Communicator>(std::move(made).value());
  say("ready");
  for (std::int64_t all = 0;;) {
    const std::int64_t parts = over.is_set() ? 1 : 0;
    const auto sum = sum_over(*group, (std::int64_t{1} << rank) + (parts << 32));
    if (sum.is_ok()) {
      all = *sum & 0xffffffff;
      if (*sum >> 32 == group->size()) {
        say(fmt::format("{:#x} of {}", all, group->size()));
        return "";
      }
      continue;
    }
    auto survivors = group->shrink();
    if (!survivors.is_ok()) return "shrink: " + survivors.status().to_string();
    if (survivors->missing.empty() && group->status().code() != StatusCode::kPeerFailed) {
      return "nobody is missing after " + group->status().to_string();
    }
    group = std::move(survivors->communicator);
  }
}

class LivingProcesses {
 public:
  explicit LivingProcesses(int size) {
    const UniqueId id = take(UniqueId::create());
    for (int rank = 0; rank < size; ++rank) {
      ranks_.push_back(std::make_unique<ForkedRank>(
          [&, rank](const ForkedRank::Say& say) { return live_on(id, rank, size, over_, say); }));
    }
    for (auto& rank : ranks_) EXPECT_EQ(rank->line(), "ready");
  }
  void kill(int rank) { ranks_[static_cast<std::size_t>(rank)].reset(); }
  std::vector<int> living() const {
    std::vector<int> ranks;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (ranks_[r] != nullptr) ranks.push_back(static_cast<int>(r));
    }
    return ranks;
  }
  // All that live are in one group.
  void expect_one_group() {
    over_.set();
    std::int64_t bits = 0;
    for (const int rank : living()) bits |= std::int64_t{1} << rank;
    for (const int rank : living()) {
      ForkedRank& it = *ranks_[static_cast<std::size_t>(rank)];
      EXPECT_EQ(it.line(), fmt::format("{:#x} of {}", bits, living().size())) << "rank " << rank;
      EXPECT_EQ(it.complaint(), "") << "rank " << rank;
    }
  }

 private:
  SharedFlag over_;
  std::vector<std::unique_ptr<ForkedRank>> ranks_;
};

TEST(ShrinkProcesses, GoOnWithoutRankZero) {
  LivingProcesses ranks(3);
  ranks.kill(0);
  ranks.expect_one_group();
}

TEST(ShrinkProcesses, GoOnWithoutTwo) {
  LivingProcesses ranks(4);
  ranks.kill(2);
  ranks.kill(0);
  ranks.expect_one_group();
}

TEST(ShrinkProcesses, GoOnAlone) {
  LivingProcesses ranks(3);
  ranks.kill(0);
  ranks.kill(1);
  ranks.expect_one_group();
}

// Whatever they are doing: an operation, agreeing, opening memory.
TEST(ShrinkProcesses, LoseRanksAtRandomMoments) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  constexpr int kFaults = 20;
#else
  constexpr int kFaults = 200;
#endif
  constexpr int kRanks = 6;
  std::mt19937 random(1);
  for (int faults = 0; faults < kFaults && !HasFailure();) {
    LivingProcesses ranks(kRanks);
    const int survivors = 1 + static_cast<int>(random() % 2);
    while (static_cast<int>(ranks.living().size()) > survivors) {
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 4000));
      const auto living = ranks.living();
      ranks.kill(living[random() % living.size()]);
      ++faults;
    }
    ranks.expect_one_group();
  }
}

TEST(ShrinkProcesses, WhoWasStoppedLearnsThatTheOthersWentOn) {
  for (const int stopped : {0, 1}) {
    const UniqueId id = take(UniqueId::create());
    const SharedFlag go;
    std::vector<std::unique_ptr<ForkedRank>> ranks;
    for (int rank = 0; rank < 3; ++rank) {
      ranks.push_back(std::make_unique<ForkedRank>([&, rank](const ForkedRank::Say& say) {
        auto group = Communicator::create(id, rank, 3, kOnHost);
        if (!group.is_ok()) return group.status().to_string();
        say("ready");
        go.wait();
        auto survivors = group->shrink(milliseconds(rank == stopped ? 60'000 : 1000));
        if (rank == stopped) {
          const Status late = survivors.status();
          return late.code() == StatusCode::kPeerFailed ? "" : "late: " + late.to_string();
        }
        if (!survivors.is_ok()) return survivors.status().to_string();
        if (survivors->missing != std::vector<int>{stopped}) return std::string("others missing");
        const auto sum = sum_over(*survivors->communicator, rank);
        if (!sum.is_ok()) return sum.status().to_string();
        say("went on");
        return *sum == 3 - stopped ? std::string() : "wrong sum";
      }));
    }
    for (auto& rank : ranks) ASSERT_EQ(rank->line(), "ready");
    ForkedRank& victim = *ranks[static_cast<std::size_t>(stopped)];
    victim.signal(SIGSTOP);
    go.set();
    for (auto& rank : ranks) {
      if (rank.get() != &victim) {
        EXPECT_EQ(rank->line(), "went on");
      }
    }
    victim.signal(SIGCONT);
    for (auto& rank : ranks) EXPECT_EQ(rank->complaint(), "");
  }
}

}  // namespace
}  // namespace tutti::test
