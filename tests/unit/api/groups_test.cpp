// Groups of calls on the host: collectives first, messages after them, whatever order each rank
// lists them in. Random ones: conformance/random_groups.hpp.
#include "unit/api/groups.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "support/check.hpp"
#include "support/ranks.hpp"
#include "tutti/tutti.hpp"

namespace tutti::test {
namespace {

struct Values {
  std::vector<int> input, output;
  explicit Values(std::size_t count, int value) : input(count, value), output(4 * count, -1) {}
};

Status reduce_all(Communicator& group, Values& values) {
  return all_reduce(group, {.input = values.input.data(),
                            .output = values.output.data(),
                            .count = values.input.size(),
                            .dtype = DataType::kInt32});
}
Status gather_all(Communicator& group, Values& values) {
  return all_gather(group, {.input = values.input.data(),
                            .output = values.output.data(),
                            .count = values.input.size(),
                            .dtype = DataType::kInt32});
}
Status broadcast_from_0(Communicator& group, Values& values) {
  return broadcast(group, {.input = values.input.data(),
                           .output = values.output.data(),
                           .count = values.input.size(),
                           .dtype = DataType::kInt32});
}
Status send_to(Communicator& group, Values& values, int peer) {
  return send(group, {.buffer = values.input.data(),
                      .count = values.input.size(),
                      .dtype = DataType::kInt32,
                      .peer = peer});
}
Status recv_from(Communicator& group, Values& values, int peer) {
  return recv(group, {.buffer = values.output.data(),
                      .count = values.input.size(),
                      .dtype = DataType::kInt32,
                      .peer = peer});
}

// {send; all_reduce} meets {all_reduce; recv}, and who has no message calls the collective alone.
TEST(GroupsApiTest, CollectivesComeBeforeMessages) {
  for (const std::size_t count : {std::size_t{5}, std::size_t{50'000}}) {
    auto groups = groups_of(4);
    on_all_ranks(4, [&](int rank) {
      Communicator& group = groups[static_cast<std::size_t>(rank)];
      Values sum(count, rank), message(count, 7);
      if (rank < 3) group_start();
      if (rank == 0) require_ok(send_to(group, message, 1));
      require_ok(reduce_all(group, sum));
      if (rank == 1) require_ok(recv_from(group, message, 0));
      if (rank < 3) require_ok(group_end());
      EXPECT_EQ(sum.output[count - 1], 6);
      EXPECT_EQ(message.output[count - 1], rank == 1 ? 7 : -1);
    });
  }
}

TEST(GroupsApiTest, CommunicatorsMayBeListedInAnyOrder) {
  auto groups = groups_of(3);
  on_all_ranks(3, [&](int rank) {
    Communicator& first = groups[static_cast<std::size_t>(rank)];
    const auto second = take(first.split(0, -rank));
    for (int round = 0; round < 20; ++round) {
      Values a(9, rank), b(9, rank + 10);
      group_start();
      if (rank == 0) require_ok(reduce_all(first, a));
      require_ok(gather_all(*second, b));
      if (rank != 0) require_ok(reduce_all(first, a));
      require_ok(group_end());
      EXPECT_EQ(a.output[0], 3);
      EXPECT_EQ(b.output[0], 12);
    }
  });
}

// What cannot be among the messages is told; the collectives run.
TEST(GroupsApiTest, CollectivesRunWhereMessagesAreRefused) {
  auto groups = groups_of(1);
  Values sum(3, 4), message(3, 1);
  group_start();
  require_ok(send_to(groups[0], message, 0));
  require_ok(reduce_all(groups[0], sum));
  EXPECT_EQ(group_end().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(sum.output[0], 4);
}

TEST(GroupsApiTest, CallsOfADestroyedCommunicatorAreDropped) {
  auto groups = groups_of(1), others = groups_of(1);
  Values sum(3, 4), lost(3, 4);
  group_start();
  require_ok(reduce_all(groups[0], sum));
  require_ok(reduce_all(others[0], lost));
  others.clear();
  const Status status = group_end();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), testing::HasSubstr("destroyed"));
  EXPECT_EQ(sum.output[0], 4);
  EXPECT_EQ(lost.output[0], -1);
  group_start();
  require_ok(group_end());
}

// Ranks whose collectives are in different orders hear so at once. (Short ones:
// group/other_operations_test.cpp.)
TEST(GroupsApiTest, CollectivesInDifferentOrdersAreAMismatch) {
  using Start = Status (*)(Communicator&, Values&);
  constexpr std::array<Start, 3> kStarts = {reduce_all, gather_all, broadcast_from_0};
  constexpr std::size_t kCount = 100'000;
  for (std::size_t a = 0; a < kStarts.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      auto groups = groups_of(2);
      std::array<Status, 2> statuses;
      on_all_ranks(2, [&](int rank) {
        Communicator& group = groups[static_cast<std::size_t>(rank)];
        Values first(kCount, 1), second(kCount, 1);
        group_start();
        require_ok(kStarts[rank == 0 ? a : b](group, first));
        require_ok(kStarts[rank == 0 ? b : a](group, second));
        statuses[static_cast<std::size_t>(rank)] = group_end();
      });
      for (const Status& status : statuses) {
        EXPECT_EQ(status.code(), StatusCode::kMismatch) << a << b << ": " << status.to_string();
      }
    }
  }
}

}  // namespace
}  // namespace tutti::test
