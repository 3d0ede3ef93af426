// Every host row with epochs that cross 2^31, 2^32 and 2^63, while the grid alternates between one
// block and all of them.
#include <gtest/gtest.h>

#include <atomic>

#include "algorithms/catalogue.hpp"
#include "executors/peer/host.hpp"
#include "support/buffer_passing.hpp"
#include "support/host_world.hpp"
#include "support/ranks.hpp"

namespace tutti::test {
namespace {

constexpr int kOperations = 4;
constexpr std::size_t kCount = 50000;
constexpr std::uint64_t kManyLaunches = std::uint64_t{1} << 47;  // nearly all that a word can count

// Operations that went wrong.
int run_operations(const Algorithm& row, std::uint64_t first_epoch) {
  constexpr std::size_t kStagingBytes = 128 * KiB;  // several passes
  const int ranks = ranks_for(row, 3);
  HostWorld world(ranks, kCount * sizeof(float), kStagingBytes);
  std::atomic<int> wrong = 0;
  on_all_ranks(ranks, [&](int rank) {
    KernelArgs work = world.work(rank, kCount, false);
    std::fill_n(work.epochs, kMaxBlocks, first_epoch);
    *work.packets.launches = LaunchWord::at(first_epoch % kManyLaunches);
    float* const input = world.input<float>(rank);
    for (int operation = 0; operation < kOperations; ++operation) {
      for (std::size_t i = 0; i < kCount; ++i) {
        input[i] = static_cast<float>(i % 1000 + static_cast<std::size_t>(rank + operation));
      }
      work.blocks = operation % 2 == 0 ? 1 : kMaxBlocks;
      work.ring = ring_slots(row, kStagingBytes, work.blocks, 0);
      const HostBody body = row.host(DataType::kFloat32, OpKind::kSum);
      bool right = run_on_host(body, work) == Outcome::kDone;
      for (std::size_t i = 0; i < kCount && right; ++i) {
        float expected = 0;
        for (int r = 0; r < ranks; ++r) {
          expected += static_cast<float>(i % 1000 + static_cast<std::size_t>(r + operation));
        }
        right = world.output<float>(rank)[i] == expected;
      }
      if (!right) ++wrong;
    }
    if (row.packets != nullptr) return;
    EXPECT_GT(work.epochs[0], work.epochs[kMaxBlocks - 1]) << "block 0 was in every operation";
  });
  return wrong;
}

TEST(EpochTest, RowsCrossTheEndsOfWords) {
  for (const Algorithm& row : rows_of(Collective::kAllReduce)) {
    if (row.host == nullptr) continue;
    for (const int bits : {31, 32, 63}) {
      EXPECT_EQ(run_operations(row, (std::uint64_t{1} << bits) - 3), 0)
          << row.id << " across 2^" << bits;
    }
  }
}

}  // namespace
}  // namespace tutti::test
