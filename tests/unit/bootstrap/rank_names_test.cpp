#include "bootstrap/rank_names.hpp"

#include <gtest/gtest.h>

#include "unit/bootstrap/groups.hpp"

namespace tutti {
namespace {

using namespace testing;

TEST(RankNames, OfTheFirstGroupAreItsRanks) {
  const RankNames world;
  EXPECT_EQ(world.of(3), "rank 3");
  EXPECT_EQ(world.of({0, 2, 5}), "ranks 0, 2 and 5");
  EXPECT_EQ(world.world(3), 3);
}

TEST(RankNames, OfASplitGroupHaveBothNumbers) {
  RankNames odd = RankNames().split({3, 1});
  EXPECT_EQ(odd.of(0), "rank 3") << "in the numbers of the group that is being split";
  EXPECT_EQ(odd.of({0, 1}), "ranks 3 and 1");
  odd.found();
  EXPECT_EQ(odd.of(0), "world rank 3 (rank 0 of the split group)");
  EXPECT_EQ(odd.of({0, 1}), "world ranks 3 and 1 (ranks 0 and 1 of the split group)");
  EXPECT_EQ(odd.of(7), "rank 7") << "there is none";
  EXPECT_EQ(odd.world(0), 3);
}

TEST(RankNames, OfASplitOfASplitAreOfTheFirstGroup) {
  RankNames half = RankNames().split({4, 5, 6, 7});
  half.found();
  RankNames quarter = half.split({2, 3});
  EXPECT_EQ(quarter.of(1), "world rank 7 (rank 3 of the split group)");
  quarter.found();
  EXPECT_EQ(quarter.of(1), "world rank 7 (rank 1 of the split group)");
}

TEST(RankNames, TellTheHostsWhereTheyDiffer) {
  RankNames world;
  world.set_hosts({"a", "a", "b", "b"});
  EXPECT_EQ(world.of(3), "rank 3 (host b)");
  EXPECT_EQ(world.of({2, 3}), "ranks 2 and 3 (host b)");
  EXPECT_EQ(world.of({0, 1, 3}), "ranks 0 (host a), 1 (host a) and 3 (host b)");
  EXPECT_EQ(world.of(4), "rank 4") << "there is none";
  RankNames one_host;
  one_host.set_hosts({"a", "a"});
  EXPECT_EQ(one_host.of(1), "rank 1");
}

TEST(RankNames, OfASplitGroupTellTheHostsOfTheirRanks) {
  RankNames world;
  world.set_hosts({"a", "a", "b", "b"});
  RankNames half = world.split({3, 1});
  EXPECT_EQ(half.of(0), "rank 3 (host b)");
  half.found();
  EXPECT_EQ(half.of(0), "world rank 3 (rank 0 of the split group, host b)");
  EXPECT_EQ(half.of({0, 1}),
            "world ranks 3 (host b) and 1 (host a) (ranks 0 and 1 of the split group)");
  RankNames of_b = world.split({2, 3});
  of_b.found();
  EXPECT_EQ(of_b.of({0, 1}), "world ranks 2 and 3 (ranks 0 and 1 of the split group, host b)");
}

class NamesInGroups : public ::testing::TestWithParam<GroupKind> {};
INSTANTIATE_TEST_SUITE_P(Groups, NamesInGroups,
                         ::testing::Values(GroupKind::kInProcess, GroupKind::kLocal,
                                           GroupKind::kTcp),
                         [](const auto& parameter) { return name_of(parameter.param); });

// World rank 3 leaves the group of the odd ranks: at once, or after a call in a group that stands.
TEST_P(NamesInGroups, AreThoseOfTheParentUntilTheSplitIsOver) {
  for (const bool is_founded : {false, true}) {
    with_group(GetParam(), 4, [&](Bootstrap& group) {
      auto half = group.split(group.rank() % 2, 0, soon());
      ASSERT_TRUE(half.is_ok());
      ASSERT_TRUE((*half)->barrier(soon()).is_ok());
      if (is_founded) (*half)->found();
      if (group.rank() == 1) {
        const Status status = (*half)->barrier(soon());
        const char* const name = is_founded ? "world rank 3 (rank 1 of the split group)" : "rank 3";
        EXPECT_TRUE(status.message().starts_with(std::string(name) + " has left the group"))
            << status.message();
      }
      if (group.rank() == 3) half->reset();
      EXPECT_TRUE(group.barrier(soon()).is_ok());
    });
  }
}

TEST_P(NamesInGroups, ATimeoutNamesWhoWaitedAndForWhom) {
  with_group(GetParam(), 4, [&](Bootstrap& group) {
    auto half = group.split(group.rank() < 2 ? 0 : 1, 0, soon());
    ASSERT_TRUE(half.is_ok());
    (*half)->found();
    if (group.rank() == 3) {
      const Status status = (*half)->barrier(Deadline(50ms));
      EXPECT_NE(status.message().find("world rank 3 (rank 1 of the split group) waited"),
                std::string::npos)
          << status.message();
      EXPECT_NE(
          status.message().find("did not hear from world rank 2 (rank 0 of the split group) of 2"),
          std::string::npos)
          << status.message();
    }
    EXPECT_TRUE(group.barrier(soon()).is_ok());
  });
}

}  // namespace
}  // namespace tutti
