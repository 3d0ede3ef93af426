// How the ranks of a group that came of split() are named: a user knows them by another number.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "group/communicator_impl.hpp"
#include "support/check.hpp"
#include "support/group.hpp"
#include "support/patience.hpp"
#include "support/ranks.hpp"
#include "tutti/collectives.hpp"

namespace tutti::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using std::chrono::milliseconds;

// Calls body(group, rank) on a thread for each of four ranks.
template <class Body>
void with_world(const Body& body) {
  auto bootstraps = make_in_process_group(4);
  on_all_ranks(4, [&](int rank) {
    auto& bootstrap = bootstraps[static_cast<std::size_t>(rank)];
    const auto group = take(CommunicatorImpl::create(std::move(bootstrap), kOnHost, Drivers{}));
    body(*group, rank);
    require_ok(group->bootstrap().barrier(Deadline(kPatience)));
  });
}

TEST(SplitTest, AnOperationThatWaitsInVainNamesRanksByBothNumbers) {
  with_world([](CommunicatorImpl& world, int rank) {
    auto half = Communicator(take(world.split(rank % 2, 0)));
    require_ok(half.prepare());
    if (rank == 1) {  // and rank 3 does not come
      require_ok(half.set_timeout(milliseconds(50)));
      float value = 1;
      const Status status = all_reduce(half, {.input = &value, .output = &value, .count = 1});
      EXPECT_EQ(status.code(), StatusCode::kTimeout);
      EXPECT_THAT(status.message(),
                  AllOf(HasSubstr("world rank 1 (rank 0 of the split group) waited"),
                        HasSubstr("for world rank 3 (rank 1 of the split group):")));
    }
    require_ok(world.bootstrap().barrier(Deadline(kPatience)));  // nobody leaves before
  });
}

TEST(SplitTest, AnAbortNamesTheRankByBothNumbers) {
  with_world([](CommunicatorImpl& world, int rank) {
    const auto half = take(world.split(rank % 2, 0));
    require_ok(world.bootstrap().barrier(Deadline(kPatience)));
    if (rank != 3) return;
    half->abort("enough");
    EXPECT_EQ(half->status().message(),
              "aborted on world rank 3 (rank 1 of the split group): enough");
  });
}

// Rank 3 votes, and is gone before the new group stands.
TEST(SplitTest, ASplitThatFailsNamesRanksByTheParentsNumbers) {
  with_world([](CommunicatorImpl& world, int rank) {
    if (rank == 3) {
      (void)take(world.bootstrap().split(1, 0, Deadline(kPatience)));
      return;
    }
    const auto half = world.split(rank % 2, 0);
    EXPECT_EQ(half.is_ok(), rank != 1);
    if (rank != 1) return;
    EXPECT_EQ(half.status().code(), StatusCode::kPeerFailed);
    EXPECT_THAT(half.status().message(),
                AllOf(HasSubstr("rank 3 has left the group"), Not(HasSubstr("split group"))));
  });
}

}  // namespace
}  // namespace tutti::test
