// What ranks decide to reuse and to drop, from what each has free.
#include "memory/pool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Pool, TheLowestBlockThatIsFreeEverywhereAndFitsIsReused) {
  const std::vector<std::vector<FreeBlock>> free_blocks = {
      {{1, 10}, {2, 20}, {3, 20}, {4, 20}}, {{2, 10}, {3, 20}, {4, 20}}, {{3, 20}, {4, 20}}};
  const PoolDecision decision = decide_pool(free_blocks, 20);
  EXPECT_EQ(decision.reuse, 3U);
  EXPECT_THAT(decision.keep, ElementsAre(4U));
  EXPECT_THAT(decision.drop, IsEmpty());
  EXPECT_EQ(decide_pool(free_blocks, 10).reuse, std::nullopt) << "of the same size only";
}

TEST(Pool, TheOldestAreDroppedBeyondTheNumberOfBlocks) {
  std::vector<FreeBlock> blocks;
  for (std::uint32_t number = 0; number < kMaxPooledBlocks + 3; ++number)
    blocks.push_back({number, 4096});
  const std::vector<std::vector<FreeBlock>> free_blocks = {blocks, blocks};
  EXPECT_THAT(decide_pool(free_blocks, 1).drop, ElementsAre(0U, 1U, 2U));
  EXPECT_THAT(decide_pool(free_blocks, 4096).drop, ElementsAre(1U, 2U)) << "0 is reused";
}

TEST(Pool, TheOldestAreDroppedBeyondTheBytes) {
  const std::vector<std::vector<FreeBlock>> free_blocks = {
      {{0, kMaxPooledBytes / 2}, {1, kMaxPooledBytes / 2}, {2, 4096}}};
  const PoolDecision decision = decide_pool(free_blocks, 1);
  EXPECT_THAT(decision.drop, ElementsAre(0U));
  EXPECT_THAT(decision.keep, ElementsAre(1U, 2U));
}

TEST(Pool, WhatOnlySomeHaveFreeIsNeitherUsedNorDropped) {
  const std::vector<std::vector<FreeBlock>> free_blocks = {{{0, 2 * kMaxPooledBytes}}, {}};
  const PoolDecision decision = decide_pool(free_blocks, 2 * kMaxPooledBytes);
  EXPECT_EQ(decision.reuse, std::nullopt);
  EXPECT_THAT(decision.drop, IsEmpty());
  EXPECT_THAT(decision.keep, IsEmpty());
}

TEST(Pool, CountsItsBytes) {
  Pool pool;
  pool.put({3, 100}, {});
  pool.put({1, 50}, {});
  EXPECT_EQ(pool.bytes(), 150U);
  EXPECT_THAT(pool.blocks(), ElementsAre(FreeBlock{1, 50}, FreeBlock{3, 100}));
  static_cast<void>(pool.take(3));
  EXPECT_EQ(pool.bytes(), 50U);
  const std::vector<std::uint32_t> rest = {1};
  EXPECT_EQ(pool.take_all(rest).size(), 1U);
  EXPECT_EQ(pool.bytes(), 0U);
}

}  // namespace
}  // namespace tutti
