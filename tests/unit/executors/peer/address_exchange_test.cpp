// Threads of one process tell each other where their buffers lie.
#include "executors/peer/address_exchange.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "support/host_world.hpp"
#include "support/ranks.hpp"

namespace tutti::test {
namespace {

constexpr int kRanks = 3;
constexpr std::size_t kBytes = 1024;

// As an operation finds it: with nobody's addresses, and buffers that are others each time.
KernelArgs operation(HostWorld& world, int rank, int round) {
  KernelArgs work = world.work(rank, 1, false);
  work.inputs = work.outputs = {};
  work.input += round % 64 * 8;
  work.output += round % 32 * 16;
  return work;
}

TEST(AddressExchangeTest, EveryRankGetsTheAddressesOfAll) {
  HostWorld world(kRanks, kBytes);
  on_all_ranks(kRanks, [&](int rank) {
    for (int round = 0; round < 500; ++round) {
      KernelArgs work = operation(world, rank, round);
      AddressExchange exchange(work, static_cast<std::uint64_t>(round));
      ASSERT_EQ(exchange.meet(nullptr, nullptr), Outcome::kDone);
      for (int r = 0; r < kRanks; ++r) {
        const int next = (rank + 1 + r) % kRanks;
        ASSERT_EQ(work.inputs.at[r], operation(world, r, round).input) << "round " << round;
        ASSERT_EQ(work.outputs.at[r], operation(world, next, round).output) << "round " << round;
      }
    }
  });
}

// What the test above would see.
TEST(AddressExchangeTest, WithoutTheBarrierThereAreNoAddressesYet) {
  HostWorld world(kRanks, kBytes);
  const ProtocolMutation weakening{.skip_barrier = 1};
  KernelArgs work = operation(world, 0, 0);
  AddressExchange exchange(work, 0);
  ASSERT_EQ(exchange.meet(&weakening, nullptr), Outcome::kDone);
  EXPECT_EQ(work.inputs.at[0], work.input);
  EXPECT_EQ(work.inputs.at[1], nullptr);
}

TEST(AddressExchangeTest, ARankThatComesLateFindsNobody) {
  HostWorld world(2, kBytes);
  for (const int rank : {0, 1}) {
    KernelArgs work = operation(world, rank, 0);
    work.timeout_ns = 1'000'000;
    AddressExchange exchange(work, 0);
    EXPECT_EQ(exchange.meet(nullptr, nullptr), Outcome::kFailed);
    EXPECT_EQ(world.failure(rank).missing_rank, 1 - rank);
    EXPECT_EQ(work.inputs.at[1 - rank], nullptr);
  }
}

TEST(AddressExchangeTest, ARankWaitsUntilNobodyUsesItsBuffers) {
  HostWorld world(kRanks, kBytes);
  const PeerPointers channels = world.work(0, 1, false).channels;
  AddressExchange::await_users(channels, 0, kRanks);
  std::atomic<bool> is_over = false;
  std::jthread rank_0;
  {
    KernelArgs own = operation(world, 0, 0), other = operation(world, 2, 0);
    const AddressExchange of_own(own, 0);  // for which nobody waits
    const AddressExchange of_other(other, 0);
    rank_0 = std::jthread([&] {
      AddressExchange::await_users(channels, 0, kRanks);
      EXPECT_TRUE(is_over);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    is_over = true;
  }
  rank_0.join();
}

}  // namespace
}  // namespace tutti::test
