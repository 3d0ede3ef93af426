// How a message is cut into passes through two halves of staging.
#include "algorithms/all_reduce/staged_passes.hpp"

#include <gtest/gtest.h>

namespace tutti {
namespace {

template <class Check>
void for_each_case(Check check) {
  for (const std::size_t count : {0, 1, 5, 16, 255, 1000, 4097, 100000}) {
    for (const int ranks : {1, 2, 3, 5, 8, 16}) {
      for (const std::size_t element_bytes : {1, 2, 4, 8}) {
        for (const std::size_t staging_bytes : {kLeastStagingBytes, std::size_t{66 * 256}}) {
          for (const bool stage_output : {false, true}) {
            KernelArgs work{};
            work.count = count;
            work.ranks = ranks;
            work.staging_bytes = staging_bytes;
            work.stage_output = stage_output;
            SCOPED_TRACE(testing::Message() << count << " x " << element_bytes << ", " << ranks
                                            << " ranks, staging " << staging_bytes);
            check(work, element_bytes);
          }
        }
      }
    }
  }
}

TEST(StagedPassesTest, SharesFollowEachOtherAndCoverEverything) {
  for_each_case([](const KernelArgs& work, std::size_t element_bytes) {
    const StagedPasses passes(work, element_bytes);
    std::size_t next = 0;
    for (std::size_t k = 0; k < passes.number; ++k) {
      const StagedPass pass = passes.pass(k);
      ASSERT_EQ(pass.all.count > 0, work.count > 0) << "pass " << k;
      for (int r = 0; r < work.ranks; ++r) {
        const Range share = pass.share_of(r);
        ASSERT_EQ(share.first, next);
        ASSERT_EQ(r < pass.whole, share.count == pass.share && share.count > 0);
        ASSERT_TRUE(r <= pass.whole || share.count == 0);
        next += share.count;
      }
    }
    EXPECT_EQ(next, work.count);
  });
}

TEST(StagedPassesTest, PlacesAreAlignedApartAndWithinTheirHalf) {
  for_each_case([](const KernelArgs& work, std::size_t element_bytes) {
    const StagedPasses passes(work, element_bytes);
    const int places = work.stage_output ? 2 * work.ranks : work.ranks;
    std::size_t end_of_half = 0;
    for (std::size_t k = 0; k < 2; ++k) {
      const StagedPass pass = passes.pass(k);
      EXPECT_GE(pass.place(0), end_of_half);
      for (int i = 0; i < places; ++i) {
        ASSERT_EQ(pass.place(i) * element_bytes % 16, 0u);
        ASSERT_LE(pass.place(i) + pass.slot, pass.place(i + 1));
      }
      ASSERT_LE(pass.share, pass.slot);
      end_of_half = pass.place(places);
    }
    EXPECT_LE(end_of_half * element_bytes, work.staging_bytes);
  });
}

TEST(StagedPassesTest, AreNoMoreThanStagingAsksFor) {
  KernelArgs work{};
  work.ranks = 2;
  work.staging_bytes = 1024;  // a half has two slots of 256 bytes
  for (const std::size_t count : {1, 128, 129, 256, 257}) {
    work.count = count;
    EXPECT_EQ(StagedPasses(work, 4).number, (count + 127) / 128) << count;
  }
}

}  // namespace
}  // namespace tutti
