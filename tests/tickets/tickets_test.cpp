// Operations on an executor that completes them on a thread of its own: how they go, and how they
// end where a rank is late, is killed, or gives up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <numeric>
#include <thread>
#include <vector>

#include "support/check.hpp"
#include "support/children.hpp"
#include "support/group.hpp"
#include "support/patience.hpp"
#include "support/ranks.hpp"
#include "tickets/ticket_executor.hpp"
#include "tutti/collectives.hpp"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr CallOptions kExchanged{.algorithm = "exchanged"};

const bool registered = [] {
  register_ticket_executor();
  return true;
}();

Status sum(Communicator& group, std::vector<std::int32_t>& values,
           const CallOptions& options = kExchanged) {
  return all_reduce(group, {.input = values.data(),
                            .output = values.data(),
                            .count = values.size(),
                            .dtype = DataType::kInt32,
                            .options = options});
}

// A group of threads; body(group) on each of its ranks.
template <class Body>
void in_group(int ranks, const Body& body) {
  const UniqueId id = take(UniqueId::create());
  on_all_ranks(ranks, [&](int rank) {
    Communicator group = take(Communicator::create(id, rank, ranks, kOnHost));
    body(group);
  });
}

TEST(TicketsTest, OperationsComeBackInTheirOrderAndBesidePeersOwn) {
  in_group(4, [](Communicator& group) {
    for (int round = 0; round < 20; ++round) {
      std::vector<std::int32_t> mine(100, group.rank() + round), all(400);
      ASSERT_TRUE(sum(group, mine).is_ok());
      EXPECT_EQ(mine[99], 6 + 4 * round);
      ASSERT_TRUE(sum(group, mine, {}).is_ok());  // by peers' memory
      EXPECT_EQ(mine[0], 4 * (6 + 4 * round));
      std::fill(mine.begin(), mine.end(), group.rank());
      ASSERT_TRUE(all_gather(group, {.input = mine.data(),
                                     .output = all.data(),
                                     .count = mine.size(),
                                     .dtype = DataType::kInt32,
                                     .options = kExchanged}));
      for (int r = 0; r < 4; ++r) EXPECT_EQ(all[static_cast<std::size_t>(r) * 100 + 99], r);
    }
  });
}

// More ranks than can share memory: nothing else runs there, so it is chosen unasked.
TEST(TicketsTest, AGroupOf64Gathers) {
  constexpr int kRanks = 64;
  auto groups = take(Communicator::create_in_process(kRanks, kOnHost));
  on_all_ranks(kRanks, [&groups](int rank) {
    Communicator& group = groups[static_cast<std::size_t>(rank)];
    const std::int32_t mine[] = {rank, -rank};
    std::vector<std::int32_t> all(2 * kRanks);
    const Status status = all_gather(
        group, {.input = mine, .output = all.data(), .count = 2, .dtype = DataType::kInt32});
    ASSERT_TRUE(status.is_ok()) << status.message();
    for (int r = 0; r < kRanks; ++r) {
      EXPECT_EQ(all[static_cast<std::size_t>(2 * r)], r);
      EXPECT_EQ(all[static_cast<std::size_t>(2 * r + 1)], -r);
    }
  });
}

TEST(TicketsTest, GroupsOfCallsAreServedToo) {
  in_group(3, [](Communicator& group) {
    std::vector<std::int32_t> first(10, group.rank()), second(20, 2 * group.rank());
    group_start();
    require_ok(sum(group, first));
    require_ok(sum(group, second));
    require_ok(group_end());
    EXPECT_EQ(first[9], 3);
    EXPECT_EQ(second[19], 6);
  });
}

TEST(TicketsTest, AnOperationThatARankDoesNotJoinEndsAtItsDeadline) {
  in_group(3, [](Communicator& group) {
    std::vector<std::int32_t> values(10);
    if (group.rank() == 1) {
      const Clock::time_point limit = Clock::now() + kPatience;
      while (group.status().is_ok() && Clock::now() < limit) {
        std::this_thread::sleep_for(milliseconds(1));
      }
      EXPECT_EQ(group.status().code(), StatusCode::kTimeout) << group.status().message();
      return;
    }
    CallOptions options = kExchanged;
    options.timeout = milliseconds(300);
    const Status status = sum(group, values, options);
    EXPECT_EQ(status.code(), StatusCode::kTimeout);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("all_reduce/exchanged #1"), HasSubstr("rank 1")));
  });
}

TEST(TicketsTest, AbortEndsAnOperationThatIsUnderWay) {
  in_group(2, [](Communicator& group) {
    std::vector<std::int32_t> values(10);
    if (group.rank() == 1) {
      std::this_thread::sleep_for(milliseconds(100));
      group.abort("enough");
      return;
    }
    const Status status = sum(group, values);
    EXPECT_EQ(status.code(), StatusCode::kAborted) << status.message();
    EXPECT_THAT(status.message(), HasSubstr("enough"));
  });
}

// Likewise by the rank itself, on another thread.
TEST(TicketsTest, ARankMayGiveUpItsOwnOperation) {
  in_group(2, [](Communicator& group) {
    if (group.rank() == 1) {
      while (group.status().is_ok()) std::this_thread::sleep_for(milliseconds(1));
      return;
    }
    std::jthread other([&group] {
      std::this_thread::sleep_for(milliseconds(100));
      group.abort("no more");
    });
    std::vector<std::int32_t> values(10);
    EXPECT_EQ(sum(group, values).code(), StatusCode::kAborted);
  });
}

TEST(TicketsTest, AKilledRankEndsTheOperationOfTheOthers) {
  const UniqueId id = take(UniqueId::create());
  Children children(3, [&id](int rank, Wire& parent) {
    Communicator group = take(Communicator::create(id, rank, 3, kOnHost));
    std::vector<std::int32_t> values(10, rank);
    require_ok(sum(group, values));
    if (rank == 1) {
      std::this_thread::sleep_for(milliseconds(100));  // what it has sent has left
      ::raise(SIGKILL);
    }
    const Clock::time_point start = Clock::now();
    require_failure(sum(group, values), StatusCode::kPeerFailed, {"rank 1"});
    require(Clock::now() - start < kPatience / 2, "long before the deadline");
    parent.say("was told");
  });
  const auto& ends = children.finish(kPatience);
  for (const int rank : {0, 2}) {
    const auto& child = ends[static_cast<std::size_t>(rank)];
    EXPECT_TRUE(child.succeeded())
        << child.describe_end() << (child.lines.empty() ? "" : child.lines.back());
  }
}

}  // namespace
}  // namespace tutti::test
