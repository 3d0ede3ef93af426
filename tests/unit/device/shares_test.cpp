// How a message is dealt out: every element to one rank, one block and one pass.
#include <gtest/gtest.h>

#include <vector>

#include "device/host_shared/host_team.hpp"
#include "device/team.hpp"

namespace tutti {
namespace {

TEST(ShardTest, SharesFollowEachOtherAndCoverEverything) {
  for (const std::size_t count : {0, 1, 4, 5, 16, 1000, 4097}) {
    for (const int ranks : {1, 2, 3, 5, 8, 16}) {
      for (const std::size_t unit : {1, 4, 16}) {
        std::size_t next = 7;
        for (int r = 0; r < ranks; ++r) {
          const Range share = shard({7, count}, r, ranks, unit);
          EXPECT_EQ(share.first, next);
          if (next + share.count < 7 + count) {
            EXPECT_EQ(share.count % unit, 0u);
          }
          next += share.count;
        }
        EXPECT_EQ(next, 7 + count);
      }
    }
  }
}

TEST(CutTest, KeepsWhatLiesBeforeTheEnd) {
  const auto expect = [](Range seen, std::size_t first, std::size_t count) {
    EXPECT_EQ(seen.first, first);
    EXPECT_EQ(seen.count, count);
  };
  expect(cut({10, 5}, 20), 10, 5);
  expect(cut({10, 5}, 12), 10, 2);
  expect(cut({10, 5}, 10), 10, 0);
  expect(cut({10, 5}, 3), 3, 0);
}

TEST(ChunkTest, OnePassWhereNothingIsStaged) {
  KernelArgs work{};
  work.count = 1000;
  work.staging_bytes = 256;
  EXPECT_EQ(chunk_elements(work, 4), 1000u);
}

TEST(ChunkTest, StagedPassesFitAndAreEven) {
  KernelArgs work{};
  work.stage_input = true;
  work.staging_bytes = 1024;
  for (const std::size_t count : {0, 1, 255, 256, 257, 300, 513, 100000}) {
    for (const std::size_t element : {1, 2, 4, 8}) {
      work.count = count;
      const std::size_t chunk = chunk_elements(work, element);
      EXPECT_LE(chunk * element, work.staging_bytes);
      if (chunk == count) continue;
      EXPECT_EQ(chunk * element % 256, 0u);
      const std::size_t passes = (count + chunk - 1) / chunk;
      EXPECT_EQ(passes, (count * element + 1023) / 1024) << count << " x " << element;
    }
  }
}

TEST(ForEachTileTest, TheBlocksTouchEveryElementOnce) {
  for (const std::size_t count : {0, 1, 255, 256, 257, 5000}) {
    for (const int blocks : {1, 2, 7}) {
      std::vector<int> touched(count + 10, 0);
      KernelArgs work{};
      work.ranks = 1;
      work.blocks = blocks;
      std::vector<std::uint64_t> epochs(kMaxBlocks);
      work.epochs = epochs.data();
      for (int b = 0; b < blocks; ++b) {
        HostTeam(work, b).for_each_tile<float>({10, count}, [&](HostAccess, TileAt tile) {
          for (int e = 0; e < tile.count; ++e) ++touched[tile.first + e];
        });
      }
      for (std::size_t i = 0; i < touched.size(); ++i) EXPECT_EQ(touched[i], i >= 10 ? 1 : 0);
    }
  }
}

// So the tiles of an owner's piece are spread in reduce_scatter_v/pull, however long it is. On GPUs
// they go to threads as they go to blocks here.
TEST(ForEachTileTest, NoBlockHasMoreThanATileMoreThanAnother) {
  constexpr std::size_t kTile = HostTeam::tile_elements<float>();
  KernelArgs work{};
  work.ranks = 1;
  std::vector<std::uint64_t> epochs(kMaxBlocks);
  work.epochs = epochs.data();
  for (const std::size_t count : {std::size_t{0}, kTile - 1, 5 * kTile, 100 * kTile + 1}) {
    for (work.blocks = 1; work.blocks <= kMaxBlocks; ++work.blocks) {
      const auto blocks = static_cast<std::size_t>(work.blocks);
      for (int b = 0; b < work.blocks; ++b) {
        std::size_t tiles = 0;
        HostTeam(work, b).for_each_tile<float>({3, count}, [&](HostAccess, TileAt) { ++tiles; });
        const std::size_t all = (count + kTile - 1) / kTile;
        EXPECT_GE(tiles, all / blocks);
        EXPECT_LE(tiles, (all + blocks - 1) / blocks);
      }
    }
  }
}

}  // namespace
}  // namespace tutti
