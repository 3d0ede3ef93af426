// Packets: how data travels in them, how a message is cut, and the waits of the host team for them.
#include "device/packets.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "algorithms/catalogue.hpp"
#include "executors/peer/host.hpp"
#include "support/host_world.hpp"
#include "support/ranks.hpp"

namespace tutti {
namespace {

using test::HostWorld;
using test::kPatience;
using test::on_all_ranks;

constexpr std::uint64_t kAllOnes = ~std::uint64_t{0};

template <class Code>
std::uint64_t there_and_back(std::uint64_t data) {
  std::uint64_t packets[Code::kPackets];
  Code::encode(data, packets);
  for (const std::uint64_t packet : packets) EXPECT_NE(packet, 0u) << std::hex << data;
  return Code::decode(packets);
}

TEST(PacketTest, DataComesBackAndNeverLooksEmpty) {
  for (int bit = 0; bit < 64; ++bit) {
    const std::uint64_t one = std::uint64_t{1} << bit;
    for (const std::uint64_t data : {one, ~one, one - 1, kAllOnes << bit >> 1}) {
      EXPECT_EQ(there_and_back<Marked>(data), data);
      if (data != kAllOnes) {
        EXPECT_EQ(there_and_back<Complemented>(data), data);
      }
    }
  }
  EXPECT_EQ(there_and_back<Marked>(kAllOnes), kAllOnes);
}

template <class T>
void expect_nans(std::uint64_t data) {
  T elements[8 / sizeof(T)];
  std::memcpy(static_cast<void*>(elements), &data, sizeof data);
  for (const T element : elements) {
    EXPECT_TRUE(std::isnan(static_cast<double>(widen(element)))) << std::hex << data;
  }
}

TEST(PacketTest, TheWordThatMeansEmptyBecomesOtherNans) {
  const std::uint64_t seen = there_and_back<Complemented>(kAllOnes);
  EXPECT_NE(seen, kAllOnes);
  for (const std::uint64_t data : {kAllOnes, seen}) {
    expect_nans<double>(data);
    expect_nans<float>(data);
    expect_nans<Half>(data);
    expect_nans<Bfloat16>(data);
    expect_nans<Float8E4M3>(data);
    expect_nans<Float8E5M2>(data);
  }
}

TEST(PacketTest, SharesHoldEachElementOnce) {
  for (const std::size_t count : {0u, 1u, 3u, 4u, 5u, 31u, 32u, 33u, 1000u}) {
    for (const int ranks : {1, 2, 3, 8, 16}) {
      const Shares<4> shares(count, ranks);
      std::vector<int> seen(count, 0);
      for (int r = 0; r < ranks; ++r) {
        for (Slice k = 0; k < shares.slices; ++k) {
          const TileAt tile = shares.tile(r, k);
          for (int e = 0; e < tile.count; ++e) ++seen.at(tile.first + static_cast<std::size_t>(e));
        }
      }
      EXPECT_EQ(seen, std::vector<int>(count, 1)) << count << " over " << ranks;
    }
  }
}

TEST(PacketTest, WhatALaunchWordShows) {
  constexpr std::uint64_t kLaunch = 7;
  const std::uint64_t now = LaunchWord::at(kLaunch), next = LaunchWord::at(kLaunch + 1);
  for (const std::uint64_t word : {now + 1, next - 1, next}) {
    EXPECT_FALSE(shows_overlap(word, kLaunch));
  }
  for (const std::uint64_t word : {now - 1, next + 1, LaunchWord::at(kLaunch + 2)}) {
    EXPECT_TRUE(shows_overlap(word, kLaunch));
  }
}

// Until the last block has added its share, each finds the launch that it belongs to.
TEST(PacketTest, SharesOfALaunchAreOneTogether) {
  for (const int blocks : {1, 2, 3, kMaxBlocks}) {
    for (int last = 0; last < blocks; ++last) {
      std::uint64_t word = LaunchWord::at(7);
      for (int b = 0; b < blocks; ++b) {
        if (b != last) word += LaunchWord::share_of(b, blocks);
      }
      EXPECT_EQ(LaunchWord::launch_of(word), 7u) << last << " of " << blocks;
      EXPECT_EQ(word + LaunchWord::share_of(last, blocks), LaunchWord::at(8));
    }
  }
}

// --- over the host ---

class PacketWaits : public ::testing::TestWithParam<const char*> {
 protected:
  static constexpr std::size_t kCount = 3000;  // a share for every rank

  HostBody body() const {
    return (*find_algorithm(Collective::kAllReduce, GetParam()))
        ->host(DataType::kFloat32, OpKind::kSum);
  }
  KernelArgs work(int rank, std::chrono::nanoseconds timeout = kPatience) {
    KernelArgs work = world_.work(rank, kCount, false);
    work.timeout_ns = static_cast<std::uint64_t>(timeout.count());
    return work;
  }
  FailureReason reason(int rank) { return static_cast<FailureReason>(world_.failure(rank).reason); }

  HostWorld world_{3, kCount * sizeof(float)};
};

TEST_P(PacketWaits, TheDeadlineEndsThemAndIsTold) {
  // What rank 0 has sent is there when rank 2 waits, and the other way round.
  constexpr std::chrono::milliseconds kShort{50};
  for (const int rank : {0, 2}) {
    EXPECT_EQ(run_on_host(body(), work(rank, kShort)), Outcome::kFailed);
  }
  for (const int rank : {0, 2}) {
    const FailureRecord& record = world_.failure(rank);
    EXPECT_EQ(record.state, 1u);
    EXPECT_EQ(reason(rank), FailureReason::kTimeout);
    EXPECT_EQ(record.waiting_rank, rank);
    EXPECT_EQ(record.missing_rank, 1);
    EXPECT_EQ(record.expected_epoch, 1u);
    EXPECT_EQ(record.seen_epoch, 0u);
    EXPECT_GE(std::chrono::nanoseconds(record.waited_ns), kShort);
  }
}

// Rank 1 sends less than the others wait for: what it announced says why, long before the deadline.
TEST_P(PacketWaits, PacketsThatNeverComeAreAMismatch) {
  on_all_ranks(3, [&](int rank) {
    KernelArgs mine = work(rank);
    if (rank == 1) {
      mine.count = 10;
      mine.signature = 0x5678;
    }
    EXPECT_EQ(run_on_host(body(), mine), Outcome::kFailed);
  });
  for (const int rank : {0, 1, 2}) EXPECT_EQ(reason(rank), FailureReason::kMismatch) << rank;
  EXPECT_EQ(world_.failure(0).missing_rank, 1);
  EXPECT_EQ(world_.failure(0).seen_signature, 0x5678u);
}

TEST_P(PacketWaits, APoisonedRankPushesNothing) {
  world_.control(0).poison = static_cast<std::uint32_t>(FailureReason::kTimeout);
  const KernelArgs mine = work(0);
  EXPECT_EQ(run_on_host(body(), mine), Outcome::kFailed);
  for (int step = 0; step < 3; ++step) {
    const auto* const words = reinterpret_cast<const std::uint64_t*>(mine.packets.memory.at[step]);
    const std::size_t all =
        (sizeof(PacketMemory) + kPacketGenerations * mine.packets.generation_bytes) / 8;
    EXPECT_EQ(std::count(words, words + all, 0u), static_cast<std::ptrdiff_t>(all));
  }
}

TEST_P(PacketWaits, BlocksOfAnotherOperationAreAnOverlap) {
  on_all_ranks(3, [&](int rank) {
    const KernelArgs mine = work(rank);
    if (rank == 0) *mine.packets.launches += 1;  // another operation's block has been counted
    EXPECT_EQ(run_on_host(body(), mine), rank == 0 ? Outcome::kFailed : Outcome::kDone);
  });
  EXPECT_EQ(reason(0), FailureReason::kOverlap);
}

INSTANTIATE_TEST_SUITE_P(Rows, PacketWaits, ::testing::Values("one_shot_push", "two_shot_push"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace tutti
