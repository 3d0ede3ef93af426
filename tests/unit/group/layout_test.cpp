#include "executors/peer/layout.hpp"

#include <gtest/gtest.h>

#include "base/knobs.hpp"

namespace tutti {
namespace {

Layout layout(const std::vector<std::string>& environment, bool captures) {
  return layout_from(Knobs::parse(environment, ""), captures);
}

TEST(LayoutTest, PartsFollowEachOtherAligned) {
  const Layout parts = layout({"TUTTI_CAPTURE_CHANNELS=5"}, true);
  ASSERT_EQ(parts.channels(), 6) << "eager operations', and five captured streams'";
  for (int c = 0; c < parts.channels(); ++c) {
    EXPECT_EQ(parts.channel_offset(c), Layout::kChannelBytes * static_cast<std::size_t>(c));
    EXPECT_EQ(parts.staging_offset(c) % 256, 0u);
    EXPECT_EQ(parts.staging_offset(c) + parts.staging_size(c), parts.staging_offset(c + 1));
  }
  EXPECT_EQ(parts.staging_offset(0), parts.channel_offset(6));
  EXPECT_EQ(parts.packet_offset(0), parts.staging_offset(6));
  for (int area = 0; area < parts.packet_areas; ++area) {
    const std::size_t bytes = sizeof(PacketMemory) + kPacketGenerations * parts.packet_room(area);
    EXPECT_EQ(parts.packet_offset(area + 1), parts.packet_offset(area) + bytes);
    EXPECT_EQ(bytes % 256, 0u);
  }
  EXPECT_EQ(parts.message_offset(), parts.packet_offset(parts.packet_areas));
  EXPECT_EQ(parts.late_bytes(), parts.message_offset() + sizeof(MessageMemory) + 8 * MiB);
  EXPECT_EQ(parts.early_bytes(), sizeof(device::impl::SignalMemory));
}

// Two ranks make memory for messages together; of more, those that have none would not come.
TEST(LayoutTest, MessagesOfManyRanksLieBehindTheSignals) {
  const Layout two = layout({}, true);
  const Layout three = layout_from(Knobs::parse({}, ""), true, 3);
  EXPECT_EQ(three.message_offset(), sizeof(device::impl::SignalMemory));
  EXPECT_EQ(three.message_offset() % 256, 0u);
  EXPECT_EQ(three.early_bytes(), two.early_bytes() + sizeof(MessageMemory) + 8 * MiB);
  EXPECT_EQ(three.late_bytes(), two.message_offset());
  EXPECT_EQ(three.bytes(), two.bytes());
}

TEST(LayoutTest, CapturesHavePacketsOfTheirOwn) {
  const Layout parts = layout({"TUTTI_PACKET_BYTES=3M"}, true);
  EXPECT_EQ(parts.packet_room(0), 3 * MiB);
  EXPECT_EQ(parts.packet_room(1), 3 * MiB);
  EXPECT_EQ(parts.packet_room(2), 512 * KiB) << "another stream's captures";
  EXPECT_EQ(parts.packet_room(Layout::kMaxPacketAreas - 1), 512 * KiB);
  EXPECT_EQ(parts.packet_room(Layout::kMaxPacketAreas), 0u) << "and no room for any more";
  EXPECT_EQ(layout({"TUTTI_PACKET_BYTES=64K"}, true).packet_room(2), 64 * KiB);
  const Layout single = layout({"TUTTI_CAPTURE_CHANNELS=0"}, true);
  EXPECT_EQ(single.channels(), 2) << "there is always one for captures";
  EXPECT_EQ(single.packet_room(2), 0u);
  EXPECT_EQ(layout({}, false).packet_areas, 1);
  EXPECT_EQ(layout({"TUTTI_PACKET_BYTES=1000"}, false).packet_bytes, 1024u);
  const Layout none = layout({"TUTTI_PACKET_BYTES=0"}, true);
  EXPECT_EQ(none.packet_areas, 0);
  EXPECT_EQ(none.message_offset(), none.staging_offset(none.channels()));
}

TEST(LayoutTest, MessagesHaveSlotsOrNone) {
  const Layout parts = layout({}, true);
  for (const int ranks : {2, 3, 8, 16}) {
    const std::size_t slot = parts.message_slot_bytes(ranks);
    const std::size_t slots = static_cast<std::size_t>(ranks - 1) * kLanes * kChunkSlots;
    EXPECT_GE(slot, 256u) << ranks;
    EXPECT_EQ(slot % 256, 0u);
    EXPECT_LE(Messages::packet_slots_bytes(ranks) + slots * slot, parts.message_bytes) << ranks;
  }
  EXPECT_EQ(parts.message_slot_bytes(2), 2 * kMoversBatch);
  EXPECT_EQ(layout({"TUTTI_MESSAGE_BYTES=64M"}, true).message_slot_bytes(2), 2 * kMoversBatch);
  const Layout little = layout({"TUTTI_MESSAGE_BYTES=100K"}, true);
  EXPECT_EQ(little.message_slot_bytes(2), 0u);
  EXPECT_GT(little.message_slot_bytes(1), 0u) << "a rank alone needs none";
  const Layout none = layout({"TUTTI_MESSAGE_BYTES=0"}, true);
  EXPECT_EQ(none.late_bytes(), none.message_offset());
}

TEST(LayoutTest, TheFirstCapturedStreamHasAsMuchStagingAsEagerOperations) {
  const Layout parts = layout({"TUTTI_STAGING_BYTES=3M", "TUTTI_CAPTURE_CHANNELS=5"}, true);
  for (const int channel : {0, 1}) {
    EXPECT_EQ(parts.staging_size(channel), 3 * MiB);
    EXPECT_EQ(parts.ring_bytes(channel), 3 * MiB);
  }
  for (const int channel : {2, 5}) {
    EXPECT_EQ(parts.staging_size(channel), 512 * KiB);
    EXPECT_EQ(parts.ring_bytes(channel), 0u);
  }
  EXPECT_EQ(layout({"TUTTI_STAGING_BYTES=4K"}, true).staging_size(2), 4 * KiB) << "nor has it more";
}

TEST(LayoutTest, StagingIsRoundedUpAndNeverEmpty) {
  EXPECT_EQ(layout({"TUTTI_STAGING_BYTES=5000"}, true).staging_bytes, 5120u);
  EXPECT_EQ(layout({"TUTTI_STAGING_BYTES=0"}, true).staging_bytes, 4096u);
  EXPECT_EQ(layout({"TUTTI_CAPTURE_STAGING_BYTES=0"}, true).capture_staging_bytes, 4096u);
}

TEST(LayoutTest, TheDefaultFitsIntoWhatACommunicatorMayTake) {
  EXPECT_LE(layout({}, true).bytes(), 64 * MiB);
  EXPECT_EQ(layout({}, false).channels(), 1) << "the host captures nothing";
}

}  // namespace
}  // namespace tutti
