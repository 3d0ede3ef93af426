// The bodies of signals (tutti/device/impl/peers.hpp) over the weak memory, and what becomes of
// them where an order is taken away.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <set>

#include "simulator/simulation.hpp"
#include "tutti/device/peers.hpp"

namespace tutti::simulated {
namespace {

using device::Peers;
using device::Thread;
using device::impl::SignalCounters;
using device::impl::SignalMemory;

constexpr int kRanks = 3;
constexpr std::size_t kBytes = 32;  // of a message: two vectors, which may arrive apart

// What a test takes away.
struct Missing {
  bool release = false, acquire = false;
};

// The ranks of a group, each a fiber, and what they share.
struct Ranks {
  Simulation simulation{kRanks, 1};
  alignas(16) std::byte data[kRanks][2][kBytes] = {};
  SignalMemory signals[kRanks] = {};
  // A signal's word, as the simulation knows words that tell something:
  // [receiver][channel][sender].
  Flag flags[kRanks][2][kRanks] = {};
  SignalCounters counters[kRanks] = {};
  Control control[kRanks] = {};
  FailureRecord failure{};
  std::uint32_t notices = 0;
  Missing missing;
  int fiber = 0;  // which one runs

  Ranks() {
    for (auto& rank : data) simulation.memory().add_data(rank[0], sizeof rank, "memory");
    simulation.memory().add_flags(&flags[0][0][0], sizeof flags / sizeof(Flag));
  }

  Peers peers(int rank) {
    Peers peers{};
    peers.rank = rank;
    peers.ranks = kRanks;
    peers.bytes = sizeof data[0];
    for (int r = 0; r < kRanks; ++r) {
      peers.at[r] = data[r][0];
      peers.signals.of[r] = &signals[r];
    }
    peers.signals.counters = &counters[rank];
    peers.signals.control = &control[rank];
    peers.signals.failure = &failure;
    peers.signals.notices = &notices;
    return peers;
  }

  bool shares(const std::byte* at) const {
    const std::less<> before;
    return !before(at, data[0][0]) && before(at, data[0][0] + sizeof data);
  }

  Flag* flag_of(const std::uint64_t* word) {
    int rank = 0;
    while (word < &signals[rank].arrived[0][0] ||
           word >= &signals[rank].arrived[0][0] + sizeof(SignalMemory) / sizeof *word) {
      ++rank;
    }
    const auto index = word - &signals[rank].arrived[0][0];
    return &flags[rank][index / device::kMaxPeers][index % device::kMaxPeers];
  }
};
Ranks* ranks = nullptr;

// Others may run meanwhile.
template <class F>
auto with_others(const F& f) {
  const int self = ranks->fiber;
  const auto result = f(self);
  ranks->fiber = self;
  return result;
}

struct SimulatedMemory {
  static void store_release(std::uint64_t* to, std::uint64_t value) {
    WeakMemory& memory = ranks->simulation.memory();
    const int self = ranks->fiber;
    if (!ranks->missing.release) memory.release(self);
    memory.send(self, ranks->missing.release ? Publish::kLoads : Publish::kStores);
    memory.store_flag(self, ranks->flag_of(to), {value, value});
  }
  template <class Ends>
  static bool wait(std::uint64_t* word, std::uint64_t expected, const Ends&) {
    const Flag* const flag = ranks->flag_of(word);
    const Waited waited = with_others(
        [&](int self) { return ranks->simulation.wait_for_flag(self, flag, expected); });
    if (!ranks->missing.acquire) ranks->simulation.memory().acquire(ranks->fiber, flag);
    return waited == Waited::kArrived;
  }
  template <class Threads>
  static void copy(const Threads&, std::byte* to, const std::byte* from, std::size_t bytes) {
    WeakMemory& memory = ranks->simulation.memory();
    for (std::size_t at = 0; at < bytes; at += 16) {
      with_others([&](int self) {
        std::byte piece[16];
        ranks->simulation.interrupt(self);
        memory.load(self, piece, from + at, 16);
        ranks->simulation.interrupt(self);
        if (ranks->shares(to)) memory.store(self, to + at, piece, 16);
        if (!ranks->shares(to)) std::memcpy(to + at, piece, 16);
        return 0;
      });
    }
  }
  static std::uint64_t load(const std::uint64_t* from) { return *from; }
  static void store(std::uint64_t* to, std::uint64_t value) { *to = value; }
  static std::uint32_t look(const std::uint32_t* from) { return *from; }
  static std::uint32_t look_acquire(const std::uint32_t* from) { return *from; }
  // Of failures, of which there are none here.
  static void poison(std::uint32_t* word, std::uint32_t reason) { *word = reason; }
  static bool claim(std::uint32_t* word) { return (*word)++ == 0; }
  static void publish(std::uint32_t* to, std::uint32_t value) { *to = value; }
};

namespace impl = device::impl;
constexpr Thread kThread;
constexpr int kFull = 0, kFree = 1;  // channels

void send(const Peers& peers, int peer, const void* from) {
  impl::put<SimulatedMemory>(peers, kThread, {peer, 0, from, kBytes});
}
void tell(const Peers& peers, int peer, int channel) {
  impl::signal<SimulatedMemory>(peers, kThread, peer, channel);
}
void hear(const Peers& peers, int peer, int channel) {
  ASSERT_TRUE(impl::wait_signal<SimulatedMemory>(peers, kThread, peer, channel, 1));
}

// What a rank does in a round: each sends its number and the round's to the next one.
using Round = std::function<void(const Peers&, const std::byte* message, std::byte* got)>;

int next_of(const Peers& peers) { return (peers.rank + 1) % kRanks; }
int before(const Peers& peers) { return (peers.rank + kRanks - 1) % kRanks; }
void take(const Peers& peers, std::byte* got) {
  impl::get<SimulatedMemory>(peers, kThread, {peers.rank, 0, got, kBytes});
}

void exchange(const Peers& peers, const std::byte* message, std::byte* got) {
  send(peers, next_of(peers), message);
  tell(peers, next_of(peers), kFull);
  hear(peers, before(peers), kFull);
  take(peers, got);
  tell(peers, before(peers), kFree);
  hear(peers, next_of(peers), kFree);
}

struct Found {
  std::set<Breach> breaches;
  bool wrong_bytes = false;
};

Found run(const Round& round, Missing missing = {}) {
  constexpr int kRounds = 3;
  Found found;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const auto fresh = std::make_unique<Ranks>();
    ranks = fresh.get();
    ranks->missing = missing;
    RandomSchedule schedule(seed, kRanks);
    ranks->simulation.run(schedule, [&](int rank, int) {
      ranks->simulation.memory().end_kernel(rank, 1);
      const Peers peers = ranks->peers(rank);
      for (int r = 0; r < kRounds; ++r) {
        ranks->fiber = rank;
        std::byte message[kBytes], got[kBytes];
        std::fill(std::begin(message), std::end(message), std::byte(16 * r + rank + 1));
        round(peers, message, got);
        for (const std::byte b : got) {
          found.wrong_bytes |= b != std::byte(16 * r + before(peers) + 1);
        }
      }
      ranks->simulation.wait_until_delivered(rank);
    });
    found.breaches.insert(ranks->simulation.violation().breach);
  }
  return found;
}

TEST(Signals, APutIsSeenWholeBehindItsSignal) {
  const Found found = run(exchange);
  EXPECT_EQ(found.breaches, std::set<Breach>{Breach::kNone});
  EXPECT_FALSE(found.wrong_bytes);
}

TEST(Signals, ABarrierOrdersBothWays) {
  const Found found = run([](const Peers& peers, const std::byte* message, std::byte* got) {
    send(peers, next_of(peers), message);
    ASSERT_TRUE(impl::barrier<SimulatedMemory>(peers, kThread, 0));
    take(peers, got);
    ASSERT_TRUE(impl::barrier<SimulatedMemory>(peers, kThread, 1));
  });
  EXPECT_EQ(found.breaches, std::set<Breach>{Breach::kNone});
  EXPECT_FALSE(found.wrong_bytes);
}

// --- what must not be left out ---

TEST(Signals, WithoutReleaseTheSignalOvertakes) {
  const Found found = run(exchange, {.release = true});
  EXPECT_EQ(found.breaches, std::set<Breach>{Breach::kEarlyLoad});
}

TEST(Signals, WithoutAcquireTheDataIsReadEarly) {
  EXPECT_TRUE(run(exchange, {.acquire = true}).breaches.contains(Breach::kEarlyLoad));
}

TEST(Signals, ASignalBeforeTheDataIsFound) {
  const Found found = run([](const Peers& peers, const std::byte* message, std::byte* got) {
    tell(peers, next_of(peers), kFull);
    send(peers, next_of(peers), message);
    hear(peers, before(peers), kFull);
    take(peers, got);
    tell(peers, before(peers), kFree);
    hear(peers, next_of(peers), kFree);
  });
  EXPECT_TRUE(found.breaches.contains(Breach::kEarlyLoad));
  EXPECT_FALSE(found.breaches.contains(Breach::kNone)) << "whatever the schedule";
}

TEST(Signals, WithoutWaitingForRoomDataIsOverwritten) {
  const Found found = run([](const Peers& peers, const std::byte* message, std::byte* got) {
    send(peers, next_of(peers), message);
    tell(peers, next_of(peers), kFull);
    hear(peers, before(peers), kFull);
    take(peers, got);
  });
  EXPECT_TRUE(found.breaches.contains(Breach::kEarlyStore));
}

// Between a poll and the look at the notices, a peer signals and leaves.
struct LeavesMeanwhile : device::impl::SystemMemory {
  static std::uint32_t look_acquire(const std::uint32_t*) {
    store_release(arrived, 1);
    return Notice::left(1);
  }
  static inline std::uint64_t* arrived = nullptr;
};

TEST(Signals, APeerThatSignalsAndLeavesIsNotMissed) {
  SignalMemory memory[2] = {};
  SignalCounters counters{};
  Control control{.poison = 0, .claimed = 0, .timeout_ns = 60'000'000'000};
  FailureRecord failure{};
  Peers peers{};
  peers.ranks = 2;
  for (int r = 0; r < 2; ++r) peers.signals.of[r] = &memory[r];
  peers.signals.counters = &counters;
  peers.signals.control = &control;
  peers.signals.failure = &failure;
  LeavesMeanwhile::arrived = &memory[0].arrived[3][1];
  EXPECT_TRUE(device::impl::take_signals<LeavesMeanwhile>(peers, {1, 3, 0, 0, 0, 0}, 1));
  EXPECT_FALSE(device::impl::take_signals<LeavesMeanwhile>(peers, {1, 3, 0, 0, 0, 0}, 1));
  EXPECT_EQ(failure.reason, static_cast<std::uint32_t>(FailureReason::kLeft));
  EXPECT_EQ(failure.seen_epoch, 1u);
}

}  // namespace
}  // namespace tutti::simulated
