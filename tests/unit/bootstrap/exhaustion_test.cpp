// One rank may open no more descriptors: at each step of joining, and while descriptors are
// exchanged. All hear whose fault it is, and a group that is there goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/fake_sockets.hpp"
#include "unit/bootstrap/groups.hpp"

namespace tutti {
namespace {

using namespace testing;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int kSize = 3;
constexpr int kMostCalls = 40;

class Exhaustion : public ::testing::TestWithParam<GroupKind> {
 protected:
  // Every rank's answer, where the k-th descriptor of `failing` cannot be opened.
  std::vector<Status> join(int failing, int k, bool& has_failed) {
    const TemporaryDirectory directory;
    const GroupId id = make_id(GetParam());
    std::vector<Status> answers(kSize);
    FakeSockets sockets(real_sockets());
    sockets.exhaust_at = k;
    run_threads(kSize, [&](int rank) {
      JoinOptions options = options_in(directory);
      if (rank == failing) options.sockets = &sockets;
      auto group = join_group_with(id, rank, kSize, soon(), options);
      answers[rank] = group.is_ok() ? (*group)->barrier(soon()) : group.status();
    });
    has_failed = sockets.exhaust_at < 0;
    EXPECT_TRUE(directory.entries().empty()) << "left behind: " << directory.entries().front();
    return answers;
  }
};
INSTANTIATE_TEST_SUITE_P(Groups, Exhaustion, ::testing::Values(GroupKind::kLocal, GroupKind::kTcp),
                         [](const auto& parameter) { return name_of(parameter.param); });

TEST_P(Exhaustion, OfARankThatJoinsIsToldToAll) {
  for (int failing = 0; failing < kSize; ++failing) {
    int failures = 0;
    for (int k = 0; k < kMostCalls; ++k) {
      // Without a place to listen at rank 0 can tell nobody: the others time out.
      if (GetParam() == GroupKind::kTcp && failing == 0 && k == 1) continue;
      bool has_failed = false;
      const auto answers = join(failing, k, has_failed);
      if (!has_failed) break;
      if (answers[failing].is_ok()) continue;  // processes are watched where that is possible
      ++failures;
      for (const Status& answer : answers) {
        EXPECT_EQ(answer.code(), StatusCode::kResourceExhausted) << k << answer.to_string();
        EXPECT_THAT(answer.message(), StartsWith("rank " + std::to_string(failing) + ": "));
      }
    }
    EXPECT_GE(failures, 3) << "rank " << failing;
    EXPECT_LT(failures, kMostCalls / 2) << "no end";
  }
}

// Rank 1 loses what the others send it; then it loses no more.
TEST_P(Exhaustion, OfAReceiverEndsNothing) {
  if (GetParam() == GroupKind::kTcp) GTEST_SKIP() << "descriptors go over UNIX connections alone";
  const TemporaryDirectory directory;
  const GroupId id = make_id(GetParam());
  FakeSockets sockets(real_sockets());
  run_threads(kSize, [&](int rank) {
    JoinOptions options = options_in(directory);
    if (rank == 1) options.sockets = &sockets;
    auto group = join_or_fail(id, rank, kSize, options);
    ASSERT_NE(group, nullptr);
    const Fd file = file_with("of rank " + std::to_string(rank));
    const std::vector<std::vector<int>> outgoing(kSize, {file.get()});
    for (const bool lose : {true, false, true, false}) {
      if (rank == 1) sockets.lose_descriptors = lose;
      ASSERT_TRUE(group->barrier(soon()).is_ok());
      const auto incoming = group->exchange_descriptors(outgoing, soon());
      if (lose && rank == 1) {
        EXPECT_EQ(incoming.status().code(), StatusCode::kResourceExhausted);
        EXPECT_THAT(incoming.status().message(), HasSubstr("rank 1: cannot take"));
        EXPECT_THAT(incoming.status().message(), HasSubstr("ulimit -n"));
      } else {
        ASSERT_TRUE(incoming.is_ok()) << incoming.status().to_string();
        EXPECT_EQ(content_of((*incoming)[2].at(0).get()), "of rank 2");
      }
      ASSERT_TRUE(group->barrier(soon()).is_ok());
    }
  });
}

// The system takes no more descriptors on their way; the message goes without them.
TEST(ExhaustionOfASender, IsToldInPlaceOfTheDescriptors) {
  const TemporaryDirectory directory;
  const GroupId id = *GroupId::local();
  FakeSockets sockets(real_sockets());
  run_threads(kSize, [&](int rank) {
    JoinOptions options = options_in(directory);
    if (rank == 2) options.sockets = &sockets;
    auto group = join_or_fail(id, rank, kSize, options);
    ASSERT_NE(group, nullptr);
    const Fd file = file_with("a file");
    const std::vector<std::vector<int>> outgoing(kSize, {file.get()});
    for (const bool refuse : {true, false}) {
      if (rank == 2) sockets.refuse_descriptors = refuse;
      ASSERT_TRUE(group->barrier(soon()).is_ok());
      const auto incoming = group->exchange_descriptors(outgoing, soon());
      if (refuse && rank != 2) {
        EXPECT_EQ(incoming.status().code(), StatusCode::kResourceExhausted);
        EXPECT_THAT(incoming.status().message(), StartsWith("rank 2: "));
      } else {
        EXPECT_TRUE(incoming.is_ok()) << incoming.status().to_string();
      }
      ASSERT_TRUE(group->barrier(soon()).is_ok());
    }
  });
}

}  // namespace
}  // namespace tutti
