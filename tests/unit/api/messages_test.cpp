// send() and recv(): what they refuse, and what comes of messages in any pattern.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <random>
#include <vector>

#include "support/check.hpp"
#include "support/group.hpp"
#include "support/patience.hpp"
#include "support/ranks.hpp"
#include "tutti/tutti.hpp"
#include "unit/api/groups.hpp"

namespace tutti::test {
namespace {

using ::testing::HasSubstr;

class MessageCallTest : public ::testing::Test {
 protected:
  void expect_refused(const Status& status, std::string_view text) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.to_string();
    EXPECT_THAT(status.message(), HasSubstr(std::string(text)));
    EXPECT_TRUE(group().status().is_ok()) << "a refused call must leave the group usable";
  }
  template <class AnyCall>
  void expect_checks(AnyCall good, Status (*run)(Communicator&, const AnyCall&)) {
    const auto refused = [&](auto&& change, std::string_view text) {
      AnyCall call = good;
      change(call);
      expect_refused(run(group(), call), text);
    };
    EXPECT_TRUE(run(group(), AnyCall{}).is_ok()) << "nothing needs no buffer, and no peer";
    refused([](AnyCall& call) { call.buffer = nullptr; }, "null buffer");
    refused([](AnyCall& call) { call.peer = 1; }, "rank 1: there are 1 ranks");
    refused([](AnyCall& call) { call.peer = -1; }, "rank -1");
    refused([](AnyCall& call) { call.count = ~std::size_t{0} / 2; }, "overflows");
    refused([](AnyCall& call) { call.dtype = static_cast<DataType>(99); }, "dtype");
    refused([](AnyCall& call) { call.buffer = reinterpret_cast<char*>(8) + 2; }, "aligned");
    refused([](AnyCall&) {}, "both ends belong into one group");
  }
  Communicator& group() { return groups_[0]; }

  std::vector<Communicator> groups_ = groups_of(1);
  std::array<float, 16> values_{};
};

TEST_F(MessageCallTest, BadArgumentsAreRefused) {
  expect_checks(Send{.buffer = values_.data(), .count = 2}, send);
  expect_checks(Recv{.buffer = values_.data(), .count = 2}, recv);
}

TEST_F(MessageCallTest, ARankSendsToItselfWithinAGroup) {
  for (std::size_t i = 0; i < 6; ++i) values_[i] = static_cast<float>(i);
  group_start();
  require_ok(recv(group(), {.buffer = &values_[8], .count = 2}));
  require_ok(recv(group(), {.buffer = &values_[10], .count = 4}));
  require_ok(send(group(), {.buffer = &values_[4], .count = 2}));
  require_ok(send(group(), {.buffer = &values_[0], .count = 4}));
  require_ok(group_end());
  EXPECT_THAT(std::vector<float>(values_.begin() + 8, values_.begin() + 14),
              ::testing::ElementsAre(4, 5, 0, 1, 2, 3));

  group_start();
  require_ok(recv(group(), {.buffer = &values_[8], .count = 2}));
  require_ok(send(group(), {.buffer = &values_[0], .count = 3}));
  expect_refused(group_end(), "differs in count or dtype");
}

// What every rank sends in a round, known to all of them.
struct Traffic {
  int from, to;
  std::size_t count;
};
std::vector<Traffic> round_of(std::uint64_t seed, int ranks, std::size_t most) {
  std::mt19937_64 random(seed);
  std::vector<Traffic> all(1 + random() % 20);
  for (Traffic& one : all) {
    one.from = static_cast<int>(random() % static_cast<unsigned>(ranks));
    one.to = static_cast<int>(random() % static_cast<unsigned>(ranks));
    one.count = random() % (random() % 3 == 0 ? most : 300);
  }
  return all;
}
std::uint16_t value_of(std::uint64_t round, std::size_t message, std::size_t i) {
  const std::uint64_t mixed =
      (round * 1315423911u + message * 2654435761u + i) * 0x9e3779b97f4a7c15u;
  return mixed % 5 == 0 ? 0 : static_cast<std::uint16_t>(mixed >> 32);
}

// Short and long ones, between all ranks, in groups of any size. Buffers lie anywhere.
TEST(MessagesApiTest, AnyTrafficComesAsItWasSent) {
  constexpr int kRanks = 4;
  auto groups = groups_of(kRanks);
  on_all_ranks(kRanks, [&](int rank) {
    Communicator& group = groups[static_cast<std::size_t>(rank)];
    for (std::uint64_t round = 1; round <= 40; ++round) {
      const auto traffic = round_of(round, kRanks, 300'000);
      std::vector<std::vector<std::uint16_t>> buffers(2 * traffic.size());
      group_start();
      for (std::size_t m = 0; m < traffic.size(); ++m) {
        const Traffic& one = traffic[m];
        if (one.from == rank) {
          for (std::size_t i = 0; i <= one.count; ++i) {
            buffers[2 * m].push_back(i == 0 ? 0 : value_of(round, m, i - 1));
          }
          require_ok(send(group, {.buffer = buffers[2 * m].data() + 1,
                                  .count = one.count,
                                  .dtype = DataType::kFloat16,
                                  .peer = one.to}));
        }
        if (one.to == rank) {
          buffers[2 * m + 1].assign(one.count + 4, 0xabcd);
          require_ok(recv(group, {.buffer = buffers[2 * m + 1].data() + 3,
                                  .count = one.count,
                                  .dtype = DataType::kFloat16,
                                  .peer = one.from}));
        }
      }
      require_ok(group_end());
      for (std::size_t m = 0; m < traffic.size(); ++m) {
        if (traffic[m].to != rank) continue;
        const auto& got = buffers[2 * m + 1];
        for (std::size_t i = 0; i < got.size(); ++i) {
          const bool inside = i >= 3 && i - 3 < traffic[m].count;
          const std::uint16_t wanted = inside ? value_of(round, m, i - 3) : 0xabcd;
          ASSERT_EQ(got[i], wanted) << "round " << round << " message " << m << " at " << i;
        }
      }
    }
  });
}

// Without a group, one by one, beside collectives that others do not wait for.
TEST(MessagesApiTest, OthersGoOnMeanwhile) {
  auto groups = groups_of(3);
  on_all_ranks(3, [&](int rank) {
    Communicator& group = groups[static_cast<std::size_t>(rank)];
    std::vector<int> data(5000), sum(8);
    for (int round = 0; round < 10; ++round) {
      const auto one = [&](auto call) {
        call.buffer = data.data();
        call.count = data.size();
        call.dtype = DataType::kInt32;
        call.peer = 1 - rank;
        return call;
      };
      if (rank == 0) {
        data.assign(data.size(), round);
        require_ok(send(group, one(Send{})));
      } else if (rank == 1) {
        require_ok(recv(group, one(Recv{})));
        EXPECT_EQ(data, std::vector<int>(data.size(), round));
      }
      std::vector<int> ones(sum.size(), rank + 1);
      require_ok(all_reduce(group, {.input = ones.data(),
                                    .output = sum.data(),
                                    .count = sum.size(),
                                    .dtype = DataType::kInt32}));
      EXPECT_EQ(sum[0], 6);
    }
  });
}

TEST(MessagesApiTest, MoreThanOneOperationHolds) {
  constexpr int kMessages = 100;
  auto groups = groups_of(2);
  on_all_ranks(2, [&](int rank) {
    Communicator& group = groups[static_cast<std::size_t>(rank)];
    std::vector<int> out(kMessages), in(kMessages, -1);
    group_start();
    for (int m = 0; m < kMessages; ++m) {
      const auto at = static_cast<std::size_t>(m);
      out[at] = 1000 * rank + m;
      require_ok(send(
          group, {.buffer = &out[at], .count = 1, .dtype = DataType::kInt32, .peer = 1 - rank}));
      require_ok(recv(
          group, {.buffer = &in[at], .count = 1, .dtype = DataType::kInt32, .peer = 1 - rank}));
    }
    require_ok(group_end());
    for (int m = 0; m < kMessages; ++m) {
      EXPECT_EQ(in[static_cast<std::size_t>(m)], 1000 * (1 - rank) + m);
    }
  });
}

// Cut into operations, no end may wait for what the other one has in a later one.
TEST(MessagesApiTest, LongOnesInAnyOrderOfCallsAreCutAlike) {
  constexpr int kMessages = 40;
  constexpr std::size_t kCount = 50'000;
  auto groups = groups_of(2);
  on_all_ranks(2, [&](int rank) {
    Communicator& group = groups[static_cast<std::size_t>(rank)];
    std::vector<std::vector<int>> out(kMessages), in(kMessages);
    group_start();
    for (int m = 0; m < kMessages; ++m) {
      out[static_cast<std::size_t>(m)].assign(kCount, 1000 * rank + m);
      require_ok(send(group, {.buffer = out[static_cast<std::size_t>(m)].data(),
                              .count = kCount,
                              .dtype = DataType::kInt32,
                              .peer = 1 - rank}));
    }
    for (int m = 0; m < kMessages; ++m) {
      in[static_cast<std::size_t>(m)].assign(kCount, -1);
      require_ok(recv(group, {.buffer = in[static_cast<std::size_t>(m)].data(),
                              .count = kCount,
                              .dtype = DataType::kInt32,
                              .peer = 1 - rank}));
    }
    require_ok(group_end());
    for (int m = 0; m < kMessages; ++m) {
      EXPECT_EQ(in[static_cast<std::size_t>(m)], std::vector<int>(kCount, 1000 * (1 - rank) + m));
    }
  });
}

// Into symmetric memory the sender stores itself: not if it means another message.
TEST(MessagesApiTest, NothingIsStoredWhereAnotherMessageIsAwaited) {
  constexpr std::size_t kTaken = 40'000, kSent = 60'000;
  auto groups = groups_of(2);
  on_all_ranks(2, [&](int rank) {
    Communicator& group = groups[static_cast<std::size_t>(rank)];
    SymmetricMemory memory = take(group.allocate(kSent * sizeof(float)));
    auto* const data = static_cast<float*>(memory.data());
    std::fill_n(data, kSent, rank == 0 ? 1.0F : 2.0F);
    require_ok(barrier(group));
    const Status status = rank == 0 ? send(group, {.buffer = data, .count = kSent, .peer = 1})
                                    : recv(group, {.buffer = data, .count = kTaken, .peer = 0});
    EXPECT_FALSE(status.is_ok());
    if (rank == 0) {
      EXPECT_EQ(status.code(), StatusCode::kMismatch) << status.to_string();
    } else {
      EXPECT_EQ(std::count(data, data + kSent, 2.0F), static_cast<std::ptrdiff_t>(kSent));
    }
  });
}

TEST(MessagesApiTest, LongOnesGoStraightIntoSymmetricMemory) {
  constexpr std::size_t kCount = 100'003;
  auto groups = groups_of(3);
  on_all_ranks(3, [&](int rank) {
    Communicator& group = groups[static_cast<std::size_t>(rank)];
    SymmetricMemory memory = take(group.allocate((kCount + 5) * sizeof(int)));
    int* const taken = static_cast<int*>(memory.data()) + 3;
    std::vector<int> sent(kCount);
    for (int round = 0; round < 8; ++round) {
      std::fill_n(static_cast<int*>(memory.data()), kCount + 5, -7);
      for (std::size_t i = 0; i < kCount; ++i) {
        sent[i] = round * 1'000'000 + rank * 100'000 + static_cast<int>(i % 1000);
      }
      group_start();
      require_ok(send(group, {.buffer = sent.data(),
                              .count = kCount,
                              .dtype = DataType::kInt32,
                              .peer = (rank + 1) % 3}));
      require_ok(recv(
          group,
          {.buffer = taken, .count = kCount, .dtype = DataType::kInt32, .peer = (rank + 2) % 3}));
      require_ok(group_end());
      const int from = (rank + 2) % 3;
      for (std::size_t i = 0; i < kCount; ++i) {
        ASSERT_EQ(taken[i], round * 1'000'000 + from * 100'000 + static_cast<int>(i % 1000));
      }
      EXPECT_EQ(taken[-1], -7);
      EXPECT_EQ(taken[kCount], -7);
    }
  });
}

TEST(MessagesApiTest, WhoNeverSendsIsNamed) {
  auto groups = groups_of(3);
  require_ok(groups[0].set_timeout(std::chrono::milliseconds(50)));
  std::vector<float> data(100);
  const Status status = recv(groups[0], {.buffer = data.data(), .count = 100, .peer = 2});
  EXPECT_EQ(status.code(), StatusCode::kTimeout);
  EXPECT_THAT(status.message(), HasSubstr("send_recv/push #1 (100 x fp32, from rank 2)"));
  EXPECT_THAT(status.message(), HasSubstr("s for rank 2"));
}

// A long one fills its slots, and waits for the taker.
TEST(MessagesApiTest, WhoNeverTakesIsNamed) {
  auto groups = groups_of(2);
  prepare_all(groups);
  require_ok(groups[0].set_timeout(std::chrono::milliseconds(50)));
  std::vector<float> data(4'000'000);
  const Status status = send(groups[0], {.buffer = data.data(), .count = data.size(), .peer = 1});
  EXPECT_EQ(status.code(), StatusCode::kTimeout);
  EXPECT_THAT(status.message(), HasSubstr("(4000000 x fp32, to rank 1)"));
  EXPECT_THAT(status.message(), HasSubstr("s for rank 1"));
}

TEST(MessagesApiTest, EndsThatDifferAreFound) {
  for (const std::size_t count : {std::size_t{7}, std::size_t{50'000}}) {
    auto groups = groups_of(2);
    on_all_ranks(2, [&](int rank) {
      Communicator& group = groups[static_cast<std::size_t>(rank)];
      std::vector<float> data(count + 1);
      if (rank == 0) {
        (void)send(group, {.buffer = data.data(), .count = count, .peer = 1});
        return;
      }
      const Status status = recv(group, {.buffer = data.data(), .count = count + 1, .peer = 0});
      EXPECT_EQ(status.code(), StatusCode::kMismatch) << status.to_string();
    });
  }
}

TEST(MessagesApiTest, AnAbortEndsTheWait) {
  auto groups = groups_of(2);
  std::vector<float> data(10);
  on_all_ranks(2, [&](int rank) {
    if (rank == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      return groups[1].abort("enough");
    }
    const Status status = recv(groups[0], {.buffer = data.data(), .count = 10, .peer = 1});
    EXPECT_EQ(status.code(), StatusCode::kAborted) << status.to_string();
  });
}

}  // namespace
}  // namespace tutti::test
