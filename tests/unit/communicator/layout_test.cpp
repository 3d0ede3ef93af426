#include "communicator/layout.hpp"

#include <gtest/gtest.h>

#include "base/knobs.hpp"

namespace tutti {
namespace {

Layout layout(std::vector<std::string> environment, bool captures) {
  return layout_from(Knobs::parse(environment, ""), captures);
}

TEST(LayoutTest, PartsFollowEachOtherAligned) {
  const Layout parts = layout({"TUTTI_CAPTURE_CHANNELS=5"}, true);
  ASSERT_EQ(parts.channels(), 6);
  for (int c = 0; c < parts.channels(); ++c) {
    EXPECT_EQ(parts.channel_offset(c), Layout::kChannelBytes * static_cast<std::size_t>(c));
    EXPECT_EQ(parts.staging_offset(c) % 256, 0u);
    EXPECT_EQ(parts.staging_offset(c) + parts.staging_size(c), parts.staging_offset(c + 1));
  }
  EXPECT_EQ(parts.staging_offset(0), parts.channel_offset(6));
  EXPECT_EQ(parts.bytes(), parts.staging_offset(6));
}

TEST(LayoutTest, StagingIsRoundedUpAndNeverEmpty) {
  EXPECT_EQ(layout({"TUTTI_STAGING_BYTES=5000"}, true).staging_bytes, 5120u);
  EXPECT_EQ(layout({"TUTTI_STAGING_BYTES=0"}, true).staging_bytes, 4096u);
  EXPECT_EQ(layout({"TUTTI_CAPTURE_STAGING_BYTES=0"}, true).capture_staging_bytes, 4096u);
}

TEST(LayoutTest, TheDefaultFitsIntoWhatACommunicatorMayTake) {
  EXPECT_LE(layout({}, true).bytes(), 64 * MiB);
  EXPECT_EQ(layout({}, false).channels(), 1);
}

}  // namespace
}  // namespace tutti
