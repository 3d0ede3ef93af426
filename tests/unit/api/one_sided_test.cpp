// Operations on one peer's memory, and signals: what they refuse, what they do, and how waits end.
#include "tutti/one_sided.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "support/check.hpp"
#include "support/group.hpp"
#include "support/ranks.hpp"
#include "tutti/tutti.hpp"
#include "unit/api/groups.hpp"

namespace tutti::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

constexpr int kLastChannel = device::kSignalChannels - 1;

// Ranks as threads, each with symmetric memory.
struct Member {
  Communicator& group;
  const SymmetricMemory& memory;

  int rank() const { return group.rank(); }
  int next() const { return (group.rank() + 1) % group.size(); }
  int before() const { return (group.rank() + group.size() - 1) % group.size(); }
  std::byte* at(std::size_t offset) const {
    return static_cast<std::byte*>(memory.data()) + offset;
  }
};
template <class Body>
void on_members(std::vector<Communicator>& groups, std::size_t bytes, const Body& body) {
  on_all_ranks(static_cast<int>(groups.size()), [&](int rank) {
    Communicator& group = groups[static_cast<std::size_t>(rank)];
    const SymmetricMemory memory = take(group.allocate(bytes));
    body(Member{group, memory});
    if (group.status().is_ok()) require_ok(barrier(group, {}));
  });
}

std::vector<std::byte> noise(std::size_t bytes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> values(bytes);
  for (std::byte& value : values) value = std::byte(random());
  return values;
}

// What another rank's failure becomes here, once the news has come.
StatusCode code_told(const Communicator& group) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (group.status().is_ok() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(1ms);
  }
  return group.status().code();
}

// --- what is refused ---

class OneSidedArguments : public ::testing::Test {
 protected:
  void expect_refused(const Status& status, std::string_view text) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.to_string();
    EXPECT_THAT(status.message(), HasSubstr(std::string(text)));
    EXPECT_TRUE(group().status().is_ok()) << "a refused call must leave the group usable";
  }
  template <class AnyCall, class Run>
  void expect_copy_checks(const AnyCall& good, const Run& run) {
    const auto refused = [&](auto&& change, std::string_view text) {
      AnyCall call = good;
      change(call);
      expect_refused(run(group(), call), text);
    };
    EXPECT_TRUE(run(group(), good).is_ok());
    EXPECT_TRUE(run(group(), AnyCall{}).is_ok()) << "nothing needs no buffer";
    refused([](AnyCall& call) { call.peer = 1; }, "peer 1: there are 1 ranks");
    refused([](AnyCall& call) { call.peer = -1; }, "peer -1");
    refused([](AnyCall& call) { call.from = nullptr; }, "null buffer");
    refused([](AnyCall& call) { call.to = nullptr; }, "null buffer");
    refused([](AnyCall& call) { call.dtype = static_cast<DataType>(99); }, "unknown dtype");
    refused([](AnyCall& call) { call.count = ~std::size_t{0} / 2; }, "count overflows");
    refused([](AnyCall& call) { call.count = 1 << 20; }, "not in symmetric memory");
    refused([this](AnyCall& call) { call.from = call.to = own_; },
            "not in symmetric memory of this communicator");
  }
  Communicator& group() { return groups_[0]; }

  std::vector<Communicator> groups_ = groups_of(1);
  SymmetricMemory memory_ = take(group().allocate(256));
  float own_[64] = {};
};

TEST_F(OneSidedArguments, OfCopiesAreChecked) {
  expect_copy_checks(Put{.from = own_, .to = memory_.data(), .count = 64}, put);
  expect_copy_checks(Get{.from = memory_.data(), .to = own_, .count = 64}, get);
  expect_copy_checks(
      Put{.from = own_, .to = memory_.data(), .count = 64},
      [](Communicator& group, const Put& call) { return put_signal(group, call, 3); });
}

TEST_F(OneSidedArguments, OfSignalsAreChecked) {
  EXPECT_TRUE(signal(group(), {.channel = kLastChannel}));
  EXPECT_TRUE(wait_signal(group(), {.channel = kLastChannel}));
  EXPECT_TRUE(wait_signal(group(), {.times = 0})) << "none is waited for";
  const std::string none = "channel 64: there are 64";
  expect_refused(signal(group(), {.channel = kLastChannel + 1}), none);
  expect_refused(wait_signal(group(), {.channel = kLastChannel + 1}), none);
  expect_refused(put_signal(group(), {}, kLastChannel + 1), none);
  expect_refused(signal(group(), {.channel = -1}), "channel -1");
  expect_refused(signal(group(), {.peer = 1}), "peer 1");
  expect_refused(wait_signal(group(), {.peer = -1}), "peer -1");
  expect_refused(wait_signal(group(), {.timeout = -1ms}), "deadline");
}

TEST_F(OneSidedArguments, MemoryMustBeThisCommunicators) {
  auto others = groups_of(1);
  const SymmetricMemory other = take(others[0].allocate(256));
  expect_refused(put(group(), {.from = own_, .to = other.data(), .count = 1}), "not in symmetric");
  EXPECT_EQ(device_peers(group(), other).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(device_peers(group(), {}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(device_peers(group(), memory_).is_ok());
}

TEST_F(OneSidedArguments, GroupsTakeNone) {
  group_start();
  const Status status = signal(group(), {});
  EXPECT_TRUE(group_end());
  expect_refused(status, "not between group_start() and group_end()");
}

// --- what they do ---

TEST(OneSided, PutsOfAnySizeAndAlignmentArriveWhole) {
  auto groups = groups_of(3);
  on_members(groups, 8192, [](const Member& self) {
    std::uint64_t round = 0;
    for (const std::size_t bytes : {0, 1, 2, 15, 16, 17, 100, 1000, 4097}) {
      for (const std::size_t offset : {0, 1, 4, 6, 16}) {
        const auto seed = ++round * 8;
        const auto mine = noise(bytes + offset, seed + static_cast<std::uint64_t>(self.rank()));
        std::memset(self.at(0), 0x5a, 8192);
        require_ok(barrier(self.group, {}));
        const Put call{.from = mine.data() + offset,
                       .to = self.at(64 + offset),
                       .count = bytes,
                       .dtype = DataType::kUint8,
                       .peer = self.next()};
        require_ok(put_signal(self.group, call, 1));
        require_ok(wait_signal(self.group, {.peer = self.before(), .channel = 1}));
        const auto theirs = noise(bytes + offset, seed + static_cast<std::uint64_t>(self.before()));
        const auto* const got = self.at(64 + offset);
        require(std::equal(theirs.begin() + static_cast<std::ptrdiff_t>(offset), theirs.end(), got),
                "the bytes of the rank before");
        require(got[-1] == std::byte{0x5a} && got[bytes] == std::byte{0x5a}, "bytes beside them");
        require_ok(barrier(self.group, {}));
      }
    }
  });
}

TEST(OneSided, GetsFetchWhatASignalToldOf) {
  auto groups = groups_of(4);
  on_members(groups, 4096, [](const Member& self) {
    for (int round = 0; round < 20; ++round) {
      std::vector<std::int64_t> got(100);
      auto* const own = reinterpret_cast<std::int64_t*>(self.at(128));
      std::iota(own, own + 100, 1000 * round + self.rank());
      for (int peer = 0; peer < self.group.size(); ++peer) {
        require_ok(signal(self.group, {.peer = peer, .channel = 2}));
      }
      for (int peer = 0; peer < self.group.size(); ++peer) {
        require_ok(wait_signal(self.group, {.peer = peer, .channel = 2}));
        require_ok(get(self.group, {.from = own,
                                    .to = got.data(),
                                    .count = 100,
                                    .dtype = DataType::kInt64,
                                    .peer = peer}));
        require(got[7] == 1000 * round + peer + 7, "the peer's values");
      }
      require_ok(barrier(self.group, {}));
    }
  });
}

TEST(OneSided, APutIsSeenBehindABarrier) {
  auto groups = groups_of(2);
  on_members(groups, 64, [](const Member& self) {
    for (int round = 1; round <= 50; ++round) {
      const int value = 10 * round + self.rank();
      require_ok(put(self.group, {.from = &value,
                                  .to = self.at(0),
                                  .count = 1,
                                  .dtype = DataType::kInt32,
                                  .peer = self.next()}));
      require_ok(barrier(self.group, {}));
      int got = 0;
      std::memcpy(&got, self.at(0), sizeof got);
      require(got == 10 * round + self.before(), "what was put before the barrier");
      require_ok(barrier(self.group, {}));
    }
  });
}

TEST(OneSided, SignalsAreCountedPerSenderAndChannel) {
  auto groups = groups_of(3);
  on_members(groups, 64, [](const Member& self) {
    // Each channel its number of signals, sent all at once, taken in another order and grouping.
    for (int channel = 0; channel <= kLastChannel; ++channel) {
      for (int n = 0; n < channel % 5 + 1; ++n) {
        require_ok(signal(self.group, {.peer = self.next(), .channel = channel}));
      }
    }
    for (int channel = kLastChannel; channel >= 0; --channel) {
      const WaitSignal one{.peer = self.before(), .channel = channel};
      require_ok(wait_signal(self.group, one));
      WaitSignal rest = one;
      rest.times = static_cast<std::uint64_t>(channel % 5);
      require_ok(wait_signal(self.group, rest));
    }
  });
}

// One rank waits alone, the others go on with a collective of their own.
TEST(OneSided, SignalsDoNotMeetCollectives) {
  auto groups = groups_of(2);
  on_members(groups, 64, [](const Member& self) {
    float value = 1;
    if (self.rank() == 0) {
      std::jthread beside([&] { require_ok(wait_signal(self.group, {.peer = 1, .channel = 9})); });
      require_ok(all_reduce(self.group, {.input = &value, .output = &value, .count = 1}));
    } else {
      require_ok(all_reduce(self.group, {.input = &value, .output = &value, .count = 1}));
      require_ok(signal(self.group, {.peer = 0, .channel = 9}));
    }
    require(value == 2, "the sum");
  });
}

// --- kernels of the user's own ---

TEST(OneSided, StreamsAndKernelsShareSignals) {
  auto groups = groups_of(2);
  on_members(groups, 64, [](const Member& self) {
    const device::Peers peers = take(device_peers(self.group, self.memory));
    const device::Block block;
    for (int round = 1; round <= 30; ++round) {
      const int value = 10 * round + self.rank();
      if ((round + self.rank()) % 2 == 0) {
        peers.put_signal(block, {self.next(), 8, &value, sizeof value}, 5);
        require_ok(wait_signal(self.group, {.peer = self.before(), .channel = 5}));
      } else {
        require_ok(put_signal(self.group,
                              {.from = &value,
                               .to = self.at(8),
                               .count = 1,
                               .dtype = DataType::kInt32,
                               .peer = self.next()},
                              5));
        require(peers.wait_signal(block, self.before(), 5), "a wait in a kernel");
      }
      require(*peers.pointer<int>(self.rank(), 8) == 10 * round + self.before(), "the value");
      int fetched = 0;
      peers.get(block, {self.next(), 8, &fetched, sizeof fetched});
      require(peers.barrier(block, 6), "a barrier");
    }
  });
}

// --- how waits end ---

TEST(OneSided, ADeadlineNamesTheMissingRank) {
  auto groups = groups_of(3);
  std::vector<Status> said(3);
  on_all_ranks(3, [&](int rank) {
    Communicator& group = groups[static_cast<std::size_t>(rank)];
    if (rank == 1) {
      (void)signal(group, {.peer = 2, .channel = 7});
      (void)wait_signal(group, {.peer = 0, .channel = 7});
      said[1] = group.status();
    } else if (rank == 2) {
      require_ok(wait_signal(group, {.peer = 1, .channel = 7}));
      said[2] = wait_signal(group, {.peer = 1, .channel = 7, .times = 2, .timeout = 50ms});
    }
  });
  EXPECT_EQ(said[2].code(), StatusCode::kTimeout) << said[2].to_string();
  EXPECT_THAT(said[2].message(),
              AllOf(HasSubstr("wait_signal on channel 7"), HasSubstr("rank 2 waited"),
                    HasSubstr("for rank 1"), HasSubstr("expected signal 3, seen 1")));
  EXPECT_EQ(said[1].code(), StatusCode::kTimeout) << "the others are told";
  EXPECT_EQ(code_told(groups[0]), StatusCode::kTimeout);
  EXPECT_EQ(signal(groups[2], {.peer = 0}).code(), StatusCode::kTimeout) << "and stay out";
}

TEST(OneSided, WaitingSendsNothing) {
  auto groups = groups_of(2);
  require_ok(signal(groups[1], {.peer = 0, .channel = 4}));
  require_ok(wait_signal(groups[0], {.peer = 1, .channel = 4}));
  const Status status = wait_signal(groups[1], {.peer = 0, .channel = 4, .timeout = 50ms});
  EXPECT_EQ(status.code(), StatusCode::kTimeout);
  EXPECT_THAT(status.message(), HasSubstr("expected signal 1, seen 0"));
}

TEST(OneSided, AKernelsWaitFailsTheSameWay) {
  auto groups = groups_of(2);
  std::vector<SymmetricMemory> memory(2);
  on_all_ranks(2, [&](int rank) {
    memory[static_cast<std::size_t>(rank)] =
        take(groups[static_cast<std::size_t>(rank)].allocate(64));
  });
  const device::Peers peers = take(device_peers(groups[0], memory[0]));
  require_ok(groups[0].set_timeout(50ms));
  const device::Block block(4, 8);
  EXPECT_FALSE(peers.barrier(block, 3));
  EXPECT_FALSE(peers.wait_signal(block, 0, 3)) << "not even for what is there";
  const int value = 7;
  peers.put(block, {1, 0, &value, sizeof value});
  peers.signal(block, 1, 3);
  EXPECT_EQ(*static_cast<int*>(memory[1].data()), 0) << "a failed rank stores nothing";
  EXPECT_THAT(groups[0].status().to_string(), AllOf(HasSubstr("timeout"), HasSubstr("for rank 1"),
                                                    HasSubstr("block 4"), HasSubstr("channel 3")));
  EXPECT_EQ(code_told(groups[1]), StatusCode::kTimeout) << "the others are told";
}

TEST(OneSided, AbortReleasesWhoWaits) {
  for (const int aborts : {0, 1}) {
    auto groups = groups_of(2);
    Status said;
    {
      std::jthread waits([&] { said = wait_signal(groups[0], {.peer = 1, .channel = 0}); });
      std::this_thread::sleep_for(20ms);
      groups[static_cast<std::size_t>(aborts)].abort("enough");
    }
    EXPECT_EQ(said.code(), StatusCode::kAborted) << said.to_string();
    EXPECT_THAT(said.message(), HasSubstr("enough"));
  }
}

TEST(OneSided, TheEndOfAPeerEndsAWait) {
  const GroupSpec spec{.kind = RankKind::kProcesses, .ranks = 2};
  const std::string failures = run_group(spec, [](Rank& rank) {
    if (rank.number() == 1) {  // not before the other has a group
      require_ok(wait_signal(rank.group, {.peer = 0, .channel = 1}));
      ::_exit(0);
    }
    require_ok(signal(rank.group, {.peer = 1, .channel = 1}));
    const Status status = wait_signal(rank.group, {.peer = 1, .channel = 0});
    require_failure(status, StatusCode::kPeerFailed);
  });
  EXPECT_EQ(failures, "");
}

// --- under pressure ---

// A pipeline around the ranks with two slots each: fresh data in every message, delays at random, a
// signal for full and one for free.
void pass_messages(const Member& self, int messages) {
  constexpr std::size_t kWords = 301;
  std::mt19937_64 random(static_cast<std::uint64_t>(self.rank()));
  std::vector<std::uint64_t> mine(kWords);
  for (int m = 0; m < messages; ++m) {
    auto* const slot = reinterpret_cast<std::uint64_t*>(self.at(0)) + kWords * (m % 2);
    if (random() % 16 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
    for (std::size_t w = 0; w < kWords; ++w) {
      mine[w] = static_cast<std::uint64_t>(m) * 1000003 + w * 8 + self.rank();
    }
    if (m >= 2) require_ok(wait_signal(self.group, {.peer = self.next(), .channel = 1}));
    require_ok(put_signal(self.group,
                          {.from = mine.data(),
                           .to = slot,
                           .count = kWords,
                           .dtype = DataType::kUint64,
                           .peer = self.next()},
                          0));
    require_ok(wait_signal(self.group, {.peer = self.before(), .channel = 0}));
    for (std::size_t w = 0; w < kWords; ++w) {
      require(slot[w] == static_cast<std::uint64_t>(m) * 1000003 + w * 8 + self.before(),
              "a message of another round");
    }
    require_ok(signal(self.group, {.peer = self.before(), .channel = 1}));
  }
}

TEST(OneSided, MessagesStayFreshUnderDelays) {
  auto groups = groups_of(4);
  on_members(groups, 8192, [](const Member& self) { pass_messages(self, 500); });
}

TEST(OneSided, AndBetweenProcesses) {
  const GroupSpec spec{.kind = RankKind::kProcesses, .ranks = 3};
  const std::string failures = run_group(spec, [](Rank& rank) {
    const SymmetricMemory memory = take(rank.group.allocate(8192));
    pass_messages(Member{rank.group, memory}, 300);
    require_ok(barrier(rank.group, {}));
  });
  EXPECT_EQ(failures, "");
}

}  // namespace
}  // namespace tutti::test
