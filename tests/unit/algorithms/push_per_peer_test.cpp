// What blocks pass that are bound to one rank: every element once, each through room of its own.
#include "algorithms/push_per_peer.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace tutti {
namespace {

constexpr std::size_t kElementBytes = 2, kUnit = 16 / kElementBytes;

KernelArgs work_of(int ranks, int blocks, std::size_t piece, std::size_t staging_bytes) {
  KernelArgs work{};
  work.ranks = ranks;
  work.blocks = blocks;
  work.count = piece * static_cast<std::size_t>(ranks);
  work.staging_bytes = staging_bytes;
  return work;
}

struct Case {
  int ranks, blocks;
  std::size_t piece, staging_bytes;
};
const Case kCases[] = {{2, 2, 1000, 1024},  {2, 7, 1000, 1024}, {3, 2, 999, 512}, {3, 8, 100, 4096},
                       {8, 128, 5000, 512}, {8, 1, 77, 256},    {4, 6, 0, 1024},  {5, 12, 3, 1024}};

// Calls f(block, passes) for the blocks that are bound to `rank`.
template <class F>
void for_each_bound_to(const KernelArgs& work, int rank, bool staged, F&& f) {
  for (int block = 0; block < work.blocks; ++block) {
    const bool bound =
        work.blocks < work.ranks ? rank % work.blocks == block : block % work.ranks == rank;
    if (bound) f(block, BoundPasses(work, block, kElementBytes, staged));
  }
}

TEST(BoundPasses, CoverEveryPieceOnce) {
  for (const Case& c : kCases) {
    const KernelArgs work = work_of(c.ranks, c.blocks, c.piece, c.staging_bytes);
    for (const bool staged : {false, true}) {
      for (int rank = 0; rank < c.ranks; ++rank) {
        std::vector<int> covered(c.piece);
        for_each_bound_to(work, rank, staged, [&](int, const BoundPasses& passes) {
          for (std::size_t k = 0; k < passes.number; ++k) {
            const Range part = passes.pass(k).part;
            for (std::size_t i = 0; i < part.count; ++i) ++covered.at(part.first + i);
          }
          EXPECT_EQ(passes.pass(passes.number).part.count, 0u);
          EXPECT_TRUE(staged || passes.number == 1);
        });
        EXPECT_EQ(covered, std::vector<int>(c.piece, 1)) << c.ranks << " ranks, " << c.blocks;
      }
    }
  }
}

// Of blocks that are bound to one rank, in one half of its staging; and halves lie apart.
TEST(BoundPasses, NoTwoBlocksShareRoom) {
  for (const Case& c : kCases) {
    const KernelArgs work = work_of(c.ranks, c.blocks, c.piece, c.staging_bytes);
    for (int rank = 0; rank < c.ranks; ++rank) {
      std::set<std::size_t> taken[2];
      for_each_bound_to(work, rank, true, [&](int block, const BoundPasses& passes) {
        for (std::size_t k = 0; k < passes.number; ++k) {
          const BoundPass pass = passes.pass(k);
          for (int from = 0; from < c.ranks; ++from) {
            EXPECT_EQ(pass.place(from) % kUnit, 0u);
            EXPECT_LE((pass.place(from) + pass.part.count) * kElementBytes, c.staging_bytes);
          }
        }
        std::set<std::size_t> mine[2];
        for (std::size_t k = 0; k < passes.number; ++k) {
          const BoundPass pass = passes.pass(k);
          for (int from = 0; from < c.ranks; ++from) {
            for (std::size_t i = 0; i < pass.part.count; ++i)
              mine[k % 2].insert(pass.place(from) + i);
          }
        }
        for (int half = 0; half < 2; ++half) {
          for (const std::size_t at : mine[half]) {
            EXPECT_TRUE(taken[half].insert(at).second) << "block " << block << ", " << at;
          }
        }
      });
      for (const std::size_t at : taken[0]) EXPECT_FALSE(taken[1].contains(at)) << at;
    }
  }
}

}  // namespace
}  // namespace tutti
