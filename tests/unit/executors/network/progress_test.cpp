// The thread of an engine: it runs what nobody waits for, and stays away from callers.
#include "executors/network/progress.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fakes/thread_wire.hpp"
#include "unit/executors/network/programs.hpp"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;

constexpr int kBothRanks = 2;
constexpr int kProgressElements = 64;

struct ProgressPair {
  ThreadNetwork network;
  std::array<std::vector<float>, kBothRanks> in, out;  // which ranks use until they are destroyed
  std::array<std::unique_ptr<NetworkProgress>, kBothRanks> ranks;

  ProgressPair() {
    std::array<std::unique_ptr<Wire>, kBothRanks> wires = {network.open(), network.open()};
    for (int rank = 0; rank < kBothRanks; ++rank) {
      EXPECT_TRUE(wires[rank]->connect(1 - rank, wires[1 - rank]->address()).is_ok());
    }
    for (int rank = 0; rank < kBothRanks; ++rank) {
      in[rank].assign(kProgressElements, static_cast<float>(rank + 1));
      out[rank].assign(kProgressElements, 0);
      auto started =
          NetworkProgress::start({.wire = std::move(wires[rank]),
                                  .group = {.id = 7,
                                            .rank = rank,
                                            .ranks = kBothRanks,
                                            .name = [](int r) { return std::to_string(r); }},
                                  .may_spin = false,
                                  .failed = [](const Status&, int) {}});
      EXPECT_TRUE(started.is_ok());
      ranks[rank] = std::move(started).value();
    }
  }

  std::uint64_t add(int rank) {
    NetworkOperation operation;
    operation.schedule = ring;
    operation.shape.rank = rank;
    operation.shape.ranks = kBothRanks;
    operation.shape.count = kProgressElements;
    operation.input = reinterpret_cast<const std::byte*>(in[rank].data());
    operation.output = reinterpret_cast<std::byte*>(out[rank].data());
    operation.text = "sum";
    return ranks[rank]->add(std::move(operation), std::chrono::seconds(60));
  }

  bool ends(int rank, std::uint64_t ticket) const {
    for (int tries = 0; tries < 5000; ++tries) {
      if (ranks[rank]->ended_through() >= ticket) return true;
      std::this_thread::sleep_for(milliseconds(1));
    }
    return false;
  }
};

TEST(NetworkProgress, WhatNobodyAwaitsEndsAfterCallsThatCameAndWent) {
  ProgressPair pair;
  for (int round = 0; round < 3; ++round) {
    std::thread other([&] { pair.ranks[1]->await(pair.add(1)); });
    pair.ranks[0]->await(pair.add(0));
    other.join();
  }
  const std::uint64_t first = pair.add(0), second = pair.add(1);
  EXPECT_TRUE(pair.ends(0, first));
  EXPECT_TRUE(pair.ends(1, second));
  EXPECT_EQ(pair.out[0], std::vector<float>(kProgressElements, 3));
  EXPECT_EQ(pair.out[1], std::vector<float>(kProgressElements, 3));
}

TEST(NetworkProgress, TheThreadOfAnotherRankServesALongCall) {
  ProgressPair pair;
  const std::uint64_t ticket = pair.add(0);
  std::thread caller([&] { pair.ranks[0]->await(ticket); });
  std::this_thread::sleep_for(milliseconds(30));
  EXPECT_LT(pair.ranks[0]->ended_through(), ticket);
  const std::uint64_t later = pair.add(1);
  EXPECT_TRUE(pair.ends(1, later));
  caller.join();
  const std::uint64_t last = pair.add(0);
  (void)pair.add(1);
  EXPECT_TRUE(pair.ends(0, last));  // its own thread takes over again
}

TEST(NetworkProgress, ACancelEndsALongCall) {
  ProgressPair pair;
  const std::uint64_t ticket = pair.add(0);
  std::thread caller([&] { pair.ranks[0]->await(ticket); });
  std::this_thread::sleep_for(milliseconds(10));
  pair.ranks[0]->cancel();
  caller.join();
  EXPECT_GE(pair.ranks[0]->ended_through(), ticket);
}

}  // namespace
}  // namespace tutti::test
