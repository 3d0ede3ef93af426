#include "fused/host_fused.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <vector>

#include "support/check.hpp"
#include "support/run_ranks.hpp"

namespace tutti::fused::test {
namespace {

using namespace std::chrono_literals;
using tutti::test::RankKind;
using tutti::test::require_ok;
using tutti::test::run_ranks;

// All ranks, in this process. A row of A is one number; "multiplied" it is copied to C.
class FusedWorld {
 public:
  FusedWorld(std::size_t m, int ranks, std::uint32_t epoch)
      : rows_{.m = m, .row_bytes = sizeof(std::uint32_t), .ranks = ranks}, epoch_(epoch) {
    for (int rank = 0; rank < ranks; ++rank) {
      all_.emplace_back(rows_, rank);
      memory_.emplace_back(all_.back().memory_bytes() / sizeof(std::uint32_t), epoch);
    }
  }

  // One call of a rank. C has what was multiplied.
  Status call(int rank, int number, const HostPatience& patience, std::vector<std::uint32_t>& c) {
    c.assign(rows_.m, 0);
    const HostMultiply multiply = [&](const HostProduct& product) {
      EXPECT_TRUE(patience.waits_for == nullptr || *patience.waits_for == 0);
      std::memcpy(&c[product.c.begin], product.a, product.c.count() * sizeof(std::uint32_t));
      return Status::ok();
    };
    const auto [begin, end] = pipelines::shard_rows(rows_.m, rows_.ranks, rank);
    std::vector<std::uint32_t> shard;
    for (std::size_t row = begin; row < end; ++row) shard.push_back(number_at(row, number));
    HostFused::Call call{.epoch = epoch_ + static_cast<std::uint32_t>(number) + 1,
                         .shard = reinterpret_cast<const std::byte*>(shard.data()),
                         .multiply = multiply,
                         .patience = patience};
    for (auto& one : memory_) call.memory.push_back(reinterpret_cast<std::byte*>(one.data()));
    return all_[static_cast<std::size_t>(rank)].run(call);
  }
  std::size_t wrong(const std::vector<std::uint32_t>& c, int number) const {
    std::size_t count = 0;
    for (std::size_t row = 0; row < c.size(); ++row) {
      count += c[row] == number_at(row, number) ? 0 : 1;
    }
    return count;
  }
  std::uint32_t& flag(int rank, std::size_t index) {
    return memory_[static_cast<std::size_t>(rank)][index];
  }

 private:
  static std::uint32_t number_at(std::size_t row, int call) {
    return static_cast<std::uint32_t>(row * 31 + static_cast<std::size_t>(call) * 1000003);
  }

  FusedRows rows_;
  std::uint32_t epoch_;
  std::vector<HostFused> all_;
  std::vector<std::vector<std::uint32_t>> memory_;
};

TEST(HostFused, EpochsWrap) {
  for (const std::uint32_t epoch : {0xFFFFFFFEU, 0x7FFFFFFEU}) {
    FusedWorld world(1100, 2, epoch);
    const std::string failures = run_ranks(RankKind::kThreads, 2, [&](int rank) {
      for (int number = 0; number < 5; ++number) {
        std::vector<std::uint32_t> c;
        require_ok(world.call(rank, number, {.timeout = [] { return 20s; }}, c));
        EXPECT_EQ(world.wrong(c, number), 0U);
      }
    });
    EXPECT_EQ(failures, "");
  }
}

// Patience ends just as the first of two chunks comes. It is not taken for the second one, for
// which the group's failure then ends the wait. While a wait is long, others see whom it is for.
TEST(HostFused, AChunkThatComesAtTheLastMomentIsTaken) {
  FusedWorld world(2048, 2, 0);
  std::vector<std::uint32_t> c;
  int looks = 0;
  std::uint64_t waits_for = 0;
  const HostPatience patience{.timeout = [] { return 20s; },
                              .group_status =
                                  [&] {
                                    EXPECT_EQ(waits_for, 2U);
                                    if (++looks == 1)
                                      std::atomic_ref(world.flag(0, 2)).store(1);  // rank 1's first
                                    return Status(StatusCode::kPeerFailed, "rank 1 has ended");
                                  },
                              .waits_for = &waits_for};
  EXPECT_EQ(world.call(0, 0, patience, c).message(), "rank 1 has ended");
  EXPECT_EQ(looks, 2);
  EXPECT_EQ(waits_for, 2U);
}

TEST(HostFused, AWaitThatIsOverNamesTheChunk) {
  FusedWorld world(2048, 2, 6);
  std::vector<std::uint32_t> c;
  world.flag(1, 0) = 7;
  const HostPatience patience{.timeout = [] { return 20ms; }};
  const Status late = world.call(1, 0, patience, c);
  EXPECT_EQ(late.code(), StatusCode::kTimeout);
  EXPECT_EQ(late.message(),
            "all_gather_matmul: rank 1 waited 20 ms for rank 0: chunk 1 of shard 0 is at epoch 6, "
            "not 7");
}

// Rank 1 still reads what rank 0 has put there in the call before.
TEST(HostFused, ARankThatHasNotEndedItsLastCallIsNamed) {
  FusedWorld world(2, 2, 6);
  std::vector<std::uint32_t> c;
  constexpr std::size_t kEndedOfRank1 = 3;  // behind two flags
  world.flag(0, kEndedOfRank1) = 5;
  EXPECT_EQ(world.call(0, 0, {.timeout = [] { return 20ms; }}, c).message(),
            "all_gather_matmul: rank 0 waited 20 ms for rank 1: the end of its last call is at "
            "epoch 5, not 6");
}

TEST(HostFused, ARankThatLeavesEndsAWait) {
  FusedWorld world(2048, 2, 6);
  std::vector<std::uint32_t> c;
  const HostPatience patience{.timeout = [] { return 20s; }, .has_left = [](int) { return true; }};
  const Status gone = world.call(0, 0, patience, c);
  EXPECT_EQ(gone.code(), StatusCode::kPeerFailed);
  EXPECT_EQ(gone.message(),
            "all_gather_matmul: rank 0 waits for rank 1, which left the group: chunk 0 of shard 1 "
            "is at epoch 6, not 7");
}

TEST(HostFused, ChunksAreAsHighAsAMultiplication) {
  EXPECT_EQ(host_chunks_of_shard({.m = 1, .ranks = 2}), 1);
  EXPECT_EQ(host_chunks_of_shard({.m = 1024, .ranks = 2}), 1);
  EXPECT_EQ(host_chunks_of_shard({.m = 1025, .ranks = 2}), 2);
  EXPECT_EQ(host_chunks_of_shard({.m = 1 << 20, .ranks = 2}), 64);
  EXPECT_EQ(host_chunks_of_shard({.m = 1 << 20, .ranks = 16}), 8) << "as many flags as there are";
}

}  // namespace
}  // namespace tutti::fused::test
