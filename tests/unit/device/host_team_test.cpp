// The waits of the host team: what ends them, and what they tell.
#include "device/host_shared/host_team.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "support/host_world.hpp"
#include "support/ranks.hpp"

namespace tutti {
namespace {

using test::HostWorld;
using test::on_all_ranks;

constexpr std::uint64_t kMillisecond = 1'000'000;

FailureReason reason_of(HostWorld& world, int rank) {
  return static_cast<FailureReason>(world.failure(rank).reason);
}

TEST(HostTeamTest, ABarrierLetsNobodyPastBeforeAllHaveCome) {
  constexpr int kRanks = 5, kRounds = 200;
  HostWorld world(kRanks, 64);
  std::atomic<int> arrived = 0;
  on_all_ranks(kRanks, [&](int rank) {
    const KernelArgs work = world.work(rank, 1, false);
    HostTeam team(work, 0);
    for (int round = 1; round <= kRounds; ++round) {
      arrived.fetch_add(1, std::memory_order_relaxed);
      ASSERT_EQ(team.barrier(Publish::kStores), Outcome::kDone);
      ASSERT_GE(arrived.load(std::memory_order_relaxed), kRanks * round);
    }
    ASSERT_EQ(team.finish(), Outcome::kDone);
    EXPECT_EQ(work.epochs[0], static_cast<std::uint64_t>(kRounds));
  });
}

TEST(HostTeamTest, TheDeadlineEndsAWaitAndIsTold) {
  HostWorld world(3, 64);
  KernelArgs work = world.work(2, 1, false);
  work.sequence = 42;
  work.timeout_ns = 50 * kMillisecond;
  // Rank 0 has come, rank 1 has not.
  auto* const own = reinterpret_cast<ChannelMemory*>(work.channels.at[2]);
  own->flags[0][0] = {1, std::uint64_t{work.signature} << 32 | 1};
  HostTeam team(work, 0);
  EXPECT_EQ(team.barrier(Publish::kStores), Outcome::kFailed);
  const FailureRecord& record = world.failure(2);
  EXPECT_EQ(record.state, 1u);
  EXPECT_EQ(reason_of(world, 2), FailureReason::kTimeout);
  EXPECT_EQ(record.sequence, 42u);
  EXPECT_EQ(record.waiting_rank, 2);
  EXPECT_EQ(record.missing_rank, 1);
  EXPECT_EQ(record.expected_epoch, 1u);
  EXPECT_EQ(record.seen_epoch, 0u);
  EXPECT_GE(record.waited_ns, work.timeout_ns);
  EXPECT_NE(world.control(2).poison, 0u);
}

TEST(HostTeamTest, TheCommunicatorsDeadlineHoldsWhereTheCallHasNone) {
  HostWorld world(2, 64);
  world.control(0).timeout_ns = 20 * kMillisecond;
  const KernelArgs work = world.work(0, 1, false);
  EXPECT_EQ(HostTeam(work, 0).barrier(Publish::kStores), Outcome::kFailed);
  EXPECT_EQ(reason_of(world, 0), FailureReason::kTimeout);
}

TEST(HostTeamTest, AnotherSignatureIsAMismatchOnBothSides) {
  HostWorld world(2, 64);
  on_all_ranks(2, [&](int rank) {
    KernelArgs work = world.work(rank, 1, false);
    if (rank == 1) work.signature = 0x5678;
    EXPECT_EQ(HostTeam(work, 0).barrier(Publish::kStores), Outcome::kFailed);
  });
  for (const int rank : {0, 1}) {
    EXPECT_EQ(reason_of(world, rank), FailureReason::kMismatch);
    EXPECT_EQ(world.failure(rank).missing_rank, 1 - rank);
  }
  EXPECT_EQ(world.failure(0).expected_signature, 0x1234u);
  EXPECT_EQ(world.failure(0).seen_signature, 0x5678u);
}

TEST(HostTeamTest, TheAbortWordEndsAWait) {
  HostWorld world(2, 64);
  const KernelArgs work = world.work(0, 1, false);
  std::jthread aborts([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::atomic_ref(world.notices(0)).store(Notice::kAbort);
  });
  EXPECT_EQ(HostTeam(work, 0).barrier(Publish::kStores), Outcome::kFailed);
  EXPECT_EQ(reason_of(world, 0), FailureReason::kAborted);
}

TEST(HostTeamTest, AWaitForARankThatHasLeftEnds) {
  HostWorld world(2, 64);
  const KernelArgs work = world.work(0, 1, false);
  std::jthread leaves([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::atomic_ref(world.notices(0)).fetch_or(Notice::left(1));
  });
  EXPECT_EQ(HostTeam(work, 0).barrier(Publish::kStores), Outcome::kFailed);
  EXPECT_EQ(reason_of(world, 0), FailureReason::kLeft);
  EXPECT_EQ(world.failure(0).missing_rank, 1);
}

// A rank may come, and leave, between a poll of its flag and the look at the notices: the next poll
// finds what it sent.
HostWorld* world_of_leaver = nullptr;

TEST(HostTeamTest, WhoLeavesBehindItsFlagIsNotMissed) {
  HostWorld world(2, 64);
  world_of_leaver = &world;
  ProtocolMutation weakening;
  weakening.after_poll = [](int waiting) {
    const KernelArgs work = world_of_leaver->work(waiting, 1, false);
    Flag& flag = reinterpret_cast<ChannelMemory*>(work.channels.at[waiting])->flags[0][1];
    std::atomic_ref(flag.check).store(std::uint64_t{work.signature} << 32 | 1);
    std::atomic_ref(flag.epoch).store(1);
    std::atomic_ref(world_of_leaver->notices(waiting)).fetch_or(Notice::left(1));
  };
  const KernelArgs work = world.work(0, 1, false);
  HostTeam team(work, 0, &weakening);
  EXPECT_EQ(team.barrier(Publish::kStores), Outcome::kDone);
  EXPECT_EQ(world.notices(0), Notice::left(1)) << "it was not looked at";
}

// Of four ranks, 1 has come and 0 and 3 have not: rank 2 says so while it waits, and to the end,
// which is an abort here.
TEST(HostTeamTest, ALongWaitTellsForWhomItWaits) {
  HostWorld world(4, 64);
  const KernelArgs work = world.work(2, 1, false);
  const auto flag_of = [&](int rank) -> Flag& {
    return reinterpret_cast<ChannelMemory*>(work.channels.at[2])->flags[0][rank];
  };
  flag_of(1) = {1, std::uint64_t{work.signature} << 32 | 1};
  std::uint64_t waits_for = 0;
  const auto is_told = [&](std::uint64_t ranks) {
    while (std::atomic_ref(waits_for).load() != ranks) std::this_thread::yield();
  };
  std::jthread comes([&] {
    is_told(0b1001);
    std::atomic_ref(flag_of(0).check).store(std::uint64_t{work.signature} << 32 | 1);
    std::atomic_ref(flag_of(0).epoch).store(1);
    is_told(0b1000);
    std::atomic_ref(world.notices(2)).store(Notice::kAbort);
  });
  EXPECT_EQ(HostTeam(work, 0, nullptr, &waits_for).barrier(Publish::kStores), Outcome::kFailed);
  comes.join();
  EXPECT_EQ(waits_for, 0b1000u);
  EXPECT_EQ(world.failure(2).missing_rank, 3);
}

TEST(HostTeamTest, AWaitThatEndsWellTellsNothingAnyMore) {
  HostWorld world(2, 64);
  std::uint64_t waits_for[2] = {};
  on_all_ranks(2, [&](int rank) {
    const KernelArgs work = world.work(rank, 1, false);
    HostTeam team(work, 0, nullptr, &waits_for[rank]);
    if (rank == 1) {
      while (std::atomic_ref(waits_for[0]).load() != 0b10) std::this_thread::yield();
    }
    ASSERT_EQ(team.barrier(Publish::kStores), Outcome::kDone);
  });
  EXPECT_EQ(waits_for[0], 0u);
  EXPECT_EQ(waits_for[1], 0u);
}

TEST(HostTeamTest, APoisonedRankWaitsForNobody) {
  HostWorld world(2, 64);
  world.control(0).poison = static_cast<std::uint32_t>(FailureReason::kTimeout);
  const KernelArgs work = world.work(0, 1, false);
  EXPECT_EQ(HostTeam(work, 0).barrier(Publish::kStores), Outcome::kFailed);
}

// Rank 1 comes when rank 0 has given up and may have other plans with its memory.
TEST(HostTeamTest, WhoGivesUpTakesItsFlagsBack) {
  HostWorld world(2, 64);
  for (const int rank : {0, 1}) {
    KernelArgs work = world.work(rank, 1, false);
    work.timeout_ns = kMillisecond;
    EXPECT_EQ(HostTeam(work, 0).barrier(Publish::kStores), Outcome::kFailed);
    EXPECT_EQ(reason_of(world, rank), FailureReason::kTimeout);
    EXPECT_EQ(world.failure(rank).missing_rank, 1 - rank);
  }
}

// A rank that is told gives up like any other. Where it has found another operation, its flags
// stand all the same: the peer has to find them.
TEST(HostTeamTest, WhoIsToldTakesItsFlagsBackButForAMismatch) {
  for (const auto found : {FailureReason::kNone, FailureReason::kMismatch}) {
    HostWorld world(2, 64);
    world.control(0).poison = Control::kTold | static_cast<std::uint32_t>(found);
    const KernelArgs work = world.work(0, 1, false);
    EXPECT_EQ(HostTeam(work, 0).barrier(Publish::kStores), Outcome::kFailed);
    const bool stands = found == FailureReason::kMismatch;
    KernelArgs late = world.work(1, 1, false);
    late.signature = 0x5678;
    late.timeout_ns = kMillisecond;
    EXPECT_EQ(HostTeam(late, 0).barrier(Publish::kStores), Outcome::kFailed);
    EXPECT_EQ(reason_of(world, 1), stands ? FailureReason::kMismatch : FailureReason::kTimeout);
  }
}

TEST(HostTeamTest, TheFirstFailureIsTheOneThatIsTold) {
  HostWorld world(2, 64);
  KernelArgs work = world.work(0, 1, false);
  work.timeout_ns = kMillisecond;
  work.sequence = 1;
  EXPECT_EQ(HostTeam(work, 0).barrier(Publish::kStores), Outcome::kFailed);
  work.sequence = 2;
  EXPECT_EQ(HostTeam(work, 0).barrier(Publish::kStores), Outcome::kFailed);
  EXPECT_EQ(world.failure(0).sequence, 1u);
}

TEST(HostTeamTest, TwoOperationsOnOneChannelAreFound) {
  HostWorld world(1, 64);
  const KernelArgs work = world.work(0, 1, false);
  HostTeam first(work, 0), second(work, 0);
  EXPECT_EQ(first.barrier(Publish::kStores), Outcome::kDone);
  EXPECT_EQ(second.barrier(Publish::kStores), Outcome::kDone);
  EXPECT_EQ(first.finish(), Outcome::kDone);
  EXPECT_EQ(second.finish(), Outcome::kFailed);
  EXPECT_EQ(reason_of(world, 0), FailureReason::kOverlap);
}

TEST(HostTeamTest, EpochsGrowBeyondThirtyTwoBits) {
  constexpr std::uint64_t kNear = (std::uint64_t{1} << 32) - 2;
  HostWorld world(2, 64);
  on_all_ranks(2, [&](int rank) {
    const KernelArgs work = world.work(rank, 1, false);
    work.epochs[0] = kNear;
    HostTeam team(work, 0);
    for (int k = 0; k < 5; ++k) ASSERT_EQ(team.barrier(Publish::kStores), Outcome::kDone);
    EXPECT_EQ(team.finish(), Outcome::kDone);
    EXPECT_EQ(work.epochs[0], kNear + 5);
  });
}

}  // namespace
}  // namespace tutti
