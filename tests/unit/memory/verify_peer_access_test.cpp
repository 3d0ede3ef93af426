// The check that peers really reach each other's memory, and that it sees it when they do not.
#include "unit/memory/heap_group.hpp"

namespace tutti::test {
namespace {

using ::testing::HasSubstr;

std::vector<Status> verify(HeapGroup& group, const std::vector<Segment>& segments) {
  std::vector<Status> results(group.size());
  on_all_ranks(group.size(), [&](int rank) {
    results[rank] =
        verify_peer_access(group.bootstrap(rank), group.cuda(rank), *segments[rank], soon());
  });
  return results;
}

class VerifyPeerAccessTest : public ::testing::TestWithParam<std::vector<int>> {
 protected:
  HeapGroup group_{HeapKind::kCuda, GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Groups, VerifyPeerAccessTest,
                         ::testing::Values(std::vector<int>{0, 0, 0}, std::vector<int>{0, 1, 2},
                                           std::vector<int>{0, 1, 1, 0}),
                         name_of_places);

TEST_P(VerifyPeerAccessTest, IsOkAndLeavesTheMemoryZero) {
  const auto segments = group_.allocate(4096);
  for (const Status& status : verify(group_, segments)) EXPECT_TRUE(status.is_ok());
  for (const Segment& segment : segments)
    EXPECT_EQ(std::count(segment->local, segment->local + 4096, std::byte{0}), 4096);
}

TEST_P(VerifyPeerAccessTest, IsCachedAndThenMovesNothing) {
  const auto segments = group_.allocate(4096);
  for (const Status& status : verify(group_, segments)) EXPECT_TRUE(status.is_ok());
  const int copies = group_.cuda(0).calls("copy");
  EXPECT_GT(copies, 0);
  for (const Status& status : verify(group_, segments)) EXPECT_TRUE(status.is_ok());
  EXPECT_EQ(group_.cuda(0).calls("copy"), copies);
}

// Every directed pair in turn: the check sees it, on every rank, and names that pair.
TEST_P(VerifyPeerAccessTest, NamesTheDirectedPairOnWhichDataIsLost) {
  for (int from = 0; from < group_.size(); ++from) {
    for (int to = 0; to < group_.size(); ++to) {
      if (from == to) continue;
      HeapGroup group(HeapKind::kCuda, GetParam());
      group.world->lossy = {{from, to}};
      const auto segments = group.allocate(4096);
      const std::string pair = "on the way from rank " + std::to_string(from);
      for (int again = 0; again < 2; ++again) {  // the second answer is from the cache
        for (const Status& status : verify(group, segments)) {
          EXPECT_EQ(status.code(), StatusCode::kUnavailable);
          EXPECT_THAT(status.message(), HasSubstr(pair));
          EXPECT_THAT(status.message(), HasSubstr("to rank " + std::to_string(to)));
        }
      }
    }
  }
}

TEST_P(VerifyPeerAccessTest, TellsAllPairsOnWhichDataIsLost) {
  HeapGroup group(HeapKind::kCuda, GetParam());
  group.world->lossy = {{0, 1}, {2, 0}};
  const auto segments = group.allocate(4096);
  for (int again = 0; again < 2; ++again) {
    std::vector<RankPairs> lost(static_cast<std::size_t>(group.size()));
    on_all_ranks(group.size(), [&](int rank) {
      EXPECT_FALSE(verify_peer_access(group.bootstrap(rank), group.cuda(rank), *segments[rank],
                                      soon(), &lost[static_cast<std::size_t>(rank)]));
    });
    for (const RankPairs& pairs : lost) {
      EXPECT_THAT(pairs, ::testing::ElementsAre(std::pair(0, 1), std::pair(2, 0)));
    }
  }
}

TEST_P(VerifyPeerAccessTest, ACopyThatFailsIsUnavailableOnAllRanksAndNotCached) {
  const auto segments = group_.allocate(4096);
  for (int k = 0; k < 3; ++k) {
    group_.cuda(1).fail("copy", k);
    for (const Status& status : verify(group_, segments))
      EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  }
  for (const Status& status : verify(group_, segments)) EXPECT_TRUE(status.is_ok());
}

TEST(VerifyPeerAccess, NamesWhoSendsNoPartOfIt) {
  HeapGroup group(HeapKind::kCuda, {0, 1, 2});
  const auto segments = group.allocate(4096);
  for (const int wrong : {0, 1}) {  // of its exchanges
    group.bootstrap(1).instead_of = [=, seen = 0](Bytes truth) mutable {
      return seen++ == wrong ? Bytes(3) : truth;
    };
    for (const Status& status : verify(group, segments)) {
      EXPECT_EQ(status.code(), StatusCode::kMismatch);
      EXPECT_THAT(status.message(), HasSubstr("rank 1 sent something else than its part"));
    }
  }
}

TEST(VerifyPeerAccess, RefusesMemoryThatIsTooSmallOrStaged) {
  HeapGroup group(HeapKind::kCuda, {0, 1});
  const auto small = group.allocate(4095);
  for (const Status& status : verify(group, small))
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
}

TEST(VerifyPeerAccess, AloneThereIsNothingToVerify) {
  HeapGroup group(HeapKind::kCuda, {0});
  const auto segments = group.allocate(4096);
  EXPECT_TRUE(verify(group, segments)[0].is_ok());
  EXPECT_EQ(group.cuda(0).calls("copy"), 0);
}

}  // namespace
}  // namespace tutti::test
