// Groups whose ranks are nodes, over wires between threads: so ThreadSanitizer sees callers, the
// threads that progress, aborts and ranks that leave beside each other.
#include "drivers/network.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "bootstrap/bootstrap.hpp"
#include "fakes/thread_wire.hpp"
#include "group/communicator_impl.hpp"
#include "support/check.hpp"
#include "support/group.hpp"
#include "support/patience.hpp"
#include "support/ranks.hpp"
#include "tutti/collectives.hpp"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

// body(communicator) on each rank, which is a node of its own.
template <class Body>
void on_nodes(int ranks, const Body& body, milliseconds timeout = kPatience) {
  ThreadNetworkDriver network;
  auto bootstraps = make_in_process_group(ranks);
  on_all_ranks(ranks, [&](int rank) {
    body(Communicator(
        take(CommunicatorImpl::create(std::move(bootstraps[static_cast<std::size_t>(rank)]),
                                      {.backend = Backend::kHost, .timeout = timeout},
                                      {.network = &network}, static_cast<std::uint64_t>(rank)))));
  });
}

Status sum(Communicator& group, std::vector<std::int32_t>& values, CallOptions options = {}) {
  return all_reduce(group, {.input = values.data(),
                            .output = values.data(),
                            .count = values.size(),
                            .dtype = DataType::kInt32,
                            .options = options});
}

void expect_sums(Communicator& group, int rounds) {
  const int ranks = group.size();
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::int32_t> values(static_cast<std::size_t>(1 + 5000 * (round % 3)),
                                     group.rank() + round);
    require_ok(sum(group, values));
    EXPECT_EQ(values.back(), ranks * (ranks - 1) / 2 + ranks * round);
  }
}

Status wait_for_end(Communicator& group) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (group.status().is_ok() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  return group.status();
}

// Ranks leave at once: what they have sent must reach those who are not done.
TEST(NetworkGroupTest, RanksLeaveAsSoonAsTheyAreDone) {
  on_nodes(5, [](Communicator group) {
    expect_sums(group, 6);
    std::int32_t value = group.rank() == 0 ? 7 : 0;
    require_ok(broadcast(group, {.input = group.rank() == 0 ? &value : nullptr,
                                 .output = &value,
                                 .count = 1,
                                 .dtype = DataType::kInt32}));
    EXPECT_EQ(value, 7);
  });
}

// Every rank to every other one, and to itself, in one group of calls, with more than is sent
// unasked; calls of different options among them are operations of their own.
TEST(NetworkGroupTest, MessagesOfOneGroupOfCallsGoBesideEachOther) {
  constexpr std::size_t kCount = 100'000;
  on_nodes(3, [](Communicator group) {
    const auto ranks = static_cast<std::size_t>(group.size());
    const std::vector<std::int32_t> mine(kCount, group.rank());
    std::vector<std::vector<std::int32_t>> theirs(ranks, std::vector<std::int32_t>(kCount, -1));
    for (const bool differ : {false, true}) {
      group_start();
      for (int peer = 0; peer < group.size(); ++peer) {
        if (differ && peer == group.rank()) continue;  // whose two ends belong together
        CallOptions options;
        if (differ) options.timeout = kPatience / 2;
        require_ok(send(
            group,
            {.buffer = mine.data(), .count = kCount, .dtype = DataType::kInt32, .peer = peer}));
        require_ok(recv(group, {.buffer = theirs[static_cast<std::size_t>(peer)].data(),
                                .count = kCount,
                                .dtype = DataType::kInt32,
                                .peer = peer,
                                .options = options}));
      }
      require_ok(group_end());
      for (std::size_t peer = 0; peer < ranks; ++peer) {
        const bool came = !differ || static_cast<int>(peer) != group.rank();
        const int value = came ? static_cast<int>(peer) : -1;
        EXPECT_EQ(theirs[peer], std::vector<std::int32_t>(kCount, value));
        std::fill(theirs[peer].begin(), theirs[peer].end(), -1);
      }
    }
  });
}

TEST(NetworkGroupTest, ParentsAndChildrenWorkByTurns) {
  on_nodes(4, [](Communicator group) {
    auto half = take(group.split(group.rank() % 2, group.rank()));
    auto all = take(group.split(0, -group.rank()));
    for (int round = 0; round < 3; ++round) {
      expect_sums(group, 1);
      expect_sums(*half, 2);
      expect_sums(*all, 1);
    }
    half.reset();
    expect_sums(group, 1);
  });
}

TEST(NetworkGroupTest, AnAbortEndsAnOperationThatIsUnderWay) {
  on_nodes(3, [](Communicator group) {
    expect_sums(group, 1);
    std::vector<std::int32_t> values(50'000);
    if (group.rank() == 2) {
      std::jthread other([&group] {
        std::this_thread::sleep_for(milliseconds(20));
        group.abort("no more");
      });
      EXPECT_EQ(sum(group, values).code(), StatusCode::kAborted);
    } else if (group.rank() == 1) {
      EXPECT_EQ(sum(group, values).code(), StatusCode::kAborted);
    } else {
      EXPECT_EQ(wait_for_end(group).code(), StatusCode::kAborted);
    }
    EXPECT_THAT(group.status().message(), HasSubstr("no more"));
  });
}

// What ranks wait for is named, and nobody takes the connections that go then for the cause.
TEST(NetworkGroupTest, ARankThatNeverCallsEndsItAtTheDeadline) {
  on_nodes(3, [](Communicator group) {
    expect_sums(group, 1);
    std::vector<std::int32_t> values(10);
    const Status status = group.rank() == 1 ? wait_for_end(group)
                                            : sum(group, values, {.timeout = milliseconds(300)});
    EXPECT_EQ(status.code(), StatusCode::kTimeout) << status.message();
    EXPECT_THAT(status.message(), AllOf(HasSubstr("all_reduce/network"), HasSubstr("#2")));
    const Communicator::Failure failure = group.failure();
    if (failure.failed_rank >= 0) return;  // the other one's deadline passed first
    EXPECT_EQ(failure.missing_rank, 1);
    EXPECT_EQ(failure.waiting_rank, group.rank());
    EXPECT_EQ(failure.sequence, 2u);
    EXPECT_THAT(failure.operation, HasSubstr("all_reduce/network"));
  });
}

TEST(NetworkGroupTest, RanksThatRunDifferentOperationsAreToldBoth) {
  on_nodes(2, [](Communicator group) {
    expect_sums(group, 1);
    std::vector<std::int32_t> values(group.rank() == 0 ? 1000 : 999);
    const Status status = sum(group, values);
    EXPECT_EQ(status.code(), StatusCode::kMismatch) << status.message();
    const auto both = AllOf(HasSubstr("(1000 x int32, sum)"), HasSubstr("(999 x int32, sum)"));
    const auto end = std::chrono::steady_clock::now() + kPatience;
    const auto has_both = [&] { return ::testing::Value(group.status().message(), both); };
    while (!has_both() && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    EXPECT_THAT(group.status().message(), both);
  });
}

// Its goodbye reaches nobody who is stopped for ever, and is not waited for, for ever.
TEST(NetworkGroupTest, ARankThatLeavesTooEarlyIsNamed) {
  on_nodes(
      2,
      [](Communicator group) {
        expect_sums(group, 1);
        if (group.rank() == 1) return;
        std::vector<std::int32_t> values(10);
        const Status status = sum(group, values);
        EXPECT_FALSE(status.is_ok());
        EXPECT_THAT(status.message(), HasSubstr("rank 1"));
      },
      milliseconds(400));
}

}  // namespace
}  // namespace tutti::test
