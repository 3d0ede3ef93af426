#include "executors/peer/captures.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace tutti {
namespace {

using ::testing::ElementsAre;
using Offers = std::vector<std::vector<std::uint64_t>>;

TEST(CapturesTest, AStreamKeepsItsChannelWhereAllRanksKnowIt) {
  EXPECT_EQ(Captures::chosen(Offers{{2, 0, 5, 0}, {2, 1, 5, 0}}), 2);
  EXPECT_EQ(Captures::chosen(Offers{{2, 0, 5, 0}, {0, 1, 0, 1}}), 2) << "rank 1's are gone already";
  EXPECT_EQ(Captures::chosen(Offers{{0, 1, 0, 1}, {2, 0, 5, 0}}), 2) << "rank 0's are";
  EXPECT_EQ(Captures::chosen(Offers{{2, 0, 5, 0}, {0, 0, 1, 0}}), 1)
      << "rank 1 has another's there";
  EXPECT_EQ(Captures::chosen(Offers{{1, 3, 1, 1}, {2, 3, 1, 0}}), 3) << "they know different ones";
}

TEST(CapturesTest, AnotherStreamHasTheChannelWithTheFewestGraphs) {
  EXPECT_EQ(Captures::chosen(Offers{{0, 0, 0}, {0, 0, 0}}), 1);
  EXPECT_EQ(Captures::chosen(Offers{{0, 1, 0}, {0, 0, 0}}), 2);
  EXPECT_EQ(Captures::chosen(Offers{{0, 1, 9}, {0, 4, 1}}), 1);
}

Stream stream(std::uintptr_t number) { return reinterpret_cast<Stream>(number); }

TEST(CapturesTest, OffersWhatItsLivingGraphsUse) {
  Captures captures(3, 4);
  EXPECT_THAT(captures.offer(stream(10)), ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(captures.open(77, stream(10), 2).number, 1U);
  EXPECT_EQ(captures.open(78, stream(11), 1).number, 2U);
  EXPECT_EQ(captures.open(79, stream(10), 3).number, 3U);
  ASSERT_NE(captures.find(77), nullptr);
  EXPECT_EQ(captures.find(77)->channel, 2);
  EXPECT_EQ(captures.find(80), nullptr);
  EXPECT_THAT(captures.offer(stream(10)), ElementsAre(3, 1, 1, 1)) << "the latest of the stream's";
  EXPECT_THAT(captures.offer(stream(11)), ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(captures.offer(stream(12)), ElementsAre(0, 1, 1, 1));

  captures.on_graph_destroyed(79)();
  // Only noted: ranks take it back at their next collective moment.
  EXPECT_NE(captures.find(79), nullptr);
  EXPECT_THAT(captures.offer(stream(10)), ElementsAre(2, 1, 1, 0));
  EXPECT_EQ(captures.find(79), nullptr);
}

TEST(CapturesTest, WhatAGraphHeldReturnsWithIt) {
  Captures captures(1, 2);
  const auto segment = std::make_shared<SymmetricSegment>();
  CaptureLease& lease = captures.open(1, stream(1), 1);
  ASSERT_TRUE(captures.take_late_slot(lease).is_ok());
  ASSERT_TRUE(captures.take_late_slot(lease).is_ok());
  EXPECT_EQ(captures.take_late_slot(lease).status().code(), StatusCode::kResourceExhausted);
  lease.segments.push_back(segment);
  EXPECT_EQ(segment.use_count(), 2);

  captures.on_graph_destroyed(1)();
  // The channel is free at once; slots and mappings wait for a moment outside captures.
  EXPECT_THAT(captures.offer(stream(1)), ElementsAre(0, 0));
  EXPECT_EQ(segment.use_count(), 2);
  const std::vector<int> slots = captures.sweep();
  EXPECT_EQ(slots.size(), 2u);
  EXPECT_EQ(segment.use_count(), 1);
  CaptureLease& next = captures.open(2, stream(1), 1);
  EXPECT_FALSE(captures.take_late_slot(next).is_ok());
  captures.give_late_slots(slots);
  EXPECT_TRUE(captures.take_late_slot(next).is_ok());
  EXPECT_TRUE(captures.take_late_slot(next).is_ok());
  EXPECT_TRUE(captures.sweep().empty());
}

TEST(CapturesTest, AGraphMayOutliveTheCommunicator) {
  std::function<void()> destroyed;
  {
    Captures captures(1, 1);
    captures.open(1, stream(1), 1);
    destroyed = captures.on_graph_destroyed(1);
  }
  destroyed();
}

}  // namespace
}  // namespace tutti
