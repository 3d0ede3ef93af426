#include "executors/peer/captures.hpp"

#include <gtest/gtest.h>

namespace tutti {
namespace {

std::uint64_t bitmap(std::initializer_list<int> channels) {
  std::uint64_t bits = 0;
  for (const int channel : channels) bits |= std::uint64_t{1} << (channel - 1);
  return bits;
}

TEST(CapturesTest, TheLowestChannelThatIsFreeEverywhere) {
  EXPECT_EQ(Captures::lowest_common({{bitmap({1, 2, 3})}, {bitmap({2, 3})}}), 2);
  EXPECT_EQ(Captures::lowest_common({{bitmap({1})}, {bitmap({2})}}), 0);
  EXPECT_EQ(Captures::lowest_common({{0, bitmap({6})}, {0, bitmap({6, 7})}}), 70);
  // Ranks with fewer words have nothing beyond them.
  EXPECT_EQ(Captures::lowest_common({{0, bitmap({6})}, {0}}), 0);
}

TEST(CapturesTest, AChannelIsTakenUntilItsGraphIsGone) {
  Captures captures(3, 4);
  EXPECT_EQ(captures.free_channels().front(), bitmap({1, 2, 3}));
  captures.open(77, 2);
  ASSERT_NE(captures.find(77), nullptr);
  EXPECT_EQ(captures.find(77)->channel, 2);
  EXPECT_EQ(captures.find(78), nullptr);
  EXPECT_EQ(captures.free_channels().front(), bitmap({1, 3}));

  const auto destroyed = captures.on_graph_destroyed(77);
  destroyed();
  // Only noted: ranks take it back at their next collective moment.
  EXPECT_NE(captures.find(77), nullptr);
  EXPECT_EQ(captures.free_channels().front(), bitmap({1, 2, 3}));
  EXPECT_EQ(captures.find(77), nullptr);
}

TEST(CapturesTest, WhatAGraphHeldReturnsWithIt) {
  Captures captures(1, 2);
  const auto segment = std::make_shared<SymmetricSegment>();
  CaptureLease& lease = captures.open(1, 1);
  ASSERT_TRUE(captures.take_late_slot(lease).is_ok());
  ASSERT_TRUE(captures.take_late_slot(lease).is_ok());
  EXPECT_EQ(captures.take_late_slot(lease).status().code(), StatusCode::kResourceExhausted);
  lease.segments.push_back(segment);
  EXPECT_EQ(segment.use_count(), 2);

  captures.on_graph_destroyed(1)();
  // The channel is free at once; slots and mappings wait for a moment outside captures.
  EXPECT_EQ(captures.free_channels().front(), 1u);
  EXPECT_EQ(segment.use_count(), 2);
  const std::vector<int> slots = captures.sweep();
  EXPECT_EQ(slots.size(), 2u);
  EXPECT_EQ(segment.use_count(), 1);
  CaptureLease& next = captures.open(2, 1);
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
    captures.open(1, 1);
    destroyed = captures.on_graph_destroyed(1);
  }
  destroyed();
}

TEST(CapturesTest, MoreChannelsThanOneWordHolds) {
  Captures captures(130, 0);
  for (int k = 0; k < 129; ++k) {
    const int channel = Captures::lowest_common({captures.free_channels()});
    EXPECT_EQ(channel, k + 1);
    captures.open(static_cast<std::uint64_t>(k), channel);
  }
  captures.open(500, 130);
  EXPECT_EQ(Captures::lowest_common({captures.free_channels()}), 0);
}

}  // namespace
}  // namespace tutti
