// The ranks that are left make a group, over every kind of connection.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "unit/bootstrap/groups.hpp"

namespace tutti {
namespace {

using namespace testing;

class Shrinking : public ::testing::TestWithParam<GroupKind> {};
INSTANTIATE_TEST_SUITE_P(Groups, Shrinking,
                         ::testing::Values(GroupKind::kInProcess, GroupKind::kLocal,
                                           GroupKind::kTcp),
                         [](const auto& parameter) { return name_of(parameter.param); });

Result<std::vector<int>> shrink(Bootstrap& group, std::chrono::nanoseconds within,
                                std::unique_ptr<Bootstrap>& survivors) {
  return group.shrink({.within = within, .patience = kPatience},
                      [&](std::unique_ptr<Bootstrap> made) {
                        survivors = std::move(made);
                        const Status met = survivors->barrier(soon());
                        if (met.is_ok()) survivors->found();
                        return met;
                      });
}

TEST_P(Shrinking, MakesAGroupWithItsOwnProofsAndDescriptors) {
  with_group(GetParam(), 4, [](Bootstrap& group) {
    if (group.rank() == 0) return;  // leaves
    group.announce_failure({group.rank(), StatusCode::kAborted, "failed"});
    std::unique_ptr<Bootstrap> survivors;
    const auto missing = shrink(group, kPatience, survivors);
    ASSERT_TRUE(missing.is_ok()) << missing.status().to_string();
    EXPECT_EQ(*missing, std::vector<int>{0});
    EXPECT_EQ(survivors->rank(), group.rank() - 1);
    EXPECT_NE(survivors->prove(view_of(1)), group.prove(view_of(1)));
    const auto parts = survivors->all_gather(pattern(survivors->rank(), 1000), soon());
    ASSERT_TRUE(parts.is_ok());
    EXPECT_TRUE(is_pattern((*parts)[2], 2, 1000));
    const Fd file = file_with("mine");
    const auto files = survivors->exchange_descriptors({{}, {file.get()}, {}}, soon());
    ASSERT_TRUE(files.is_ok()) << files.status().to_string();
    EXPECT_TRUE(survivors->barrier(soon()).is_ok());
  });
}

// The fence, over real connections: both give up waiting for each other at about the same time.
TEST_P(Shrinking, NeverLeavesTwoGroups) {
  for (int time = 0; time < 30; ++time) {
    std::atomic<int> alone = 0, together = 0, excluded = 0;
    std::barrier both_are_there(2);
    with_group(GetParam(), 2, [&](Bootstrap& group) {
      std::mt19937 random(static_cast<unsigned>(2 * time + group.rank()));
      both_are_there.arrive_and_wait();  // the group's own would fail where one is so fast
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 100));
      std::unique_ptr<Bootstrap> survivors;
      const auto missing = shrink(group, std::chrono::microseconds(random() % 100), survivors);
      if (!missing.is_ok()) {
        EXPECT_EQ(missing.status().code(), StatusCode::kPeerFailed);
        ++excluded;
      } else {
        ++(missing->empty() ? together : alone);
      }
    });
    EXPECT_LE(alone, 1) << "two groups";
    EXPECT_NE(together, 1);
    EXPECT_EQ(alone + together + excluded, 2);
  }
}

}  // namespace
}  // namespace tutti
