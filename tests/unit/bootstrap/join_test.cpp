// How a group comes about although others are late, wrong, or strangers; and what is left behind.
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <thread>

#include "fakes/fake_sockets.hpp"
#include "support/check.hpp"
#include "support/children.hpp"
#include "support/patience.hpp"
#include "unit/bootstrap/strangers.hpp"

namespace tutti {
namespace {

using namespace testing;

class Joining : public ::testing::TestWithParam<GroupKind> {
 protected:
  const TemporaryDirectory directory_;
  const GroupId id_ = make_id(GetParam());
};
INSTANTIATE_TEST_SUITE_P(Groups, Joining, ::testing::Values(GroupKind::kLocal, GroupKind::kTcp),
                         [](const auto& parameter) { return name_of(parameter.param); });

TEST_P(Joining, RefusesRanksThatCannotBe) {
  for (const auto& [rank, size] : {std::pair{-1, 2}, {2, 2}, {0, 0}, {0, -1}, {0, 1 << 20}}) {
    EXPECT_EQ(join_group_with(id_, rank, size, soon(), options_in(directory_)).status().code(),
              StatusCode::kInvalidArgument);
  }
}

TEST_P(Joining, NamesRanksThatNeverCome) {
  // The others must all have come by then.
  EXPECT_TRUE(with_longer_limits([&](std::chrono::milliseconds limit) {
    std::vector<std::future<JoinResult>> joins;
    for (const int rank : {0, 1, 3}) {
      // Over TCP only rank 0 knows, and tells the others.
      const bool knows = id_.is_local() || rank == 0;
      joins.push_back(
          join_later(id_, rank, 4, Deadline(knows ? limit : 4 * limit), options_in(directory_)));
    }
    bool named = true;
    for (auto& join : joins) {
      const JoinResult group = join.get();
      EXPECT_EQ(group.status().code(), StatusCode::kTimeout) << group.status().to_string();
      named = named && group.status().message().find("rank 2") != std::string::npos;
    }
    return named;
  }));
  EXPECT_TRUE(directory_.entries().empty()) << directory_.entries().front();
}

TEST_P(Joining, NamesAMissingRankZero) {
  const auto group = join_group_with(id_, 1, 3, Deadline(50ms), options_in(directory_));
  EXPECT_EQ(group.status().code(), StatusCode::kTimeout);
  EXPECT_NE(group.status().message().find("did not meet ranks 0"), std::string::npos)
      << group.status().to_string();
  EXPECT_TRUE(directory_.entries().empty());
}

// Who gives up tells the others, however long they would have waited.
TEST_P(Joining, FailsOnAllRanksWhenItFailsOnOne) {
  EXPECT_TRUE(with_longer_limits([&](std::chrono::milliseconds limit) {
    std::atomic<bool> alone{false};
    JoinOptions options = options_in(directory_);
    options.called_off = [&] { return alone.load(); };
    auto patient = join_later(id_, 1, 3, Deadline(kNever), options);
    const auto hasty = join_group_with(id_, 0, 3, Deadline(limit), options_in(directory_));
    EXPECT_EQ(hasty.status().code(), StatusCode::kTimeout);
    const auto missed = [](const Status& status, const char* ranks) {
      return status.message().find(std::string("did not meet ") + ranks) != std::string::npos;
    };
    alone = missed(hasty.status(), "ranks 1 and 2 of 3");
    const JoinResult other = patient.get();
    if (alone) return false;
    EXPECT_EQ(other.status().code(), StatusCode::kTimeout) << other.status().to_string();
    EXPECT_TRUE(missed(other.status(), "rank 2 of 3")) << other.status().to_string();
    return true;
  }));
  EXPECT_TRUE(directory_.entries().empty());
}

TEST_P(Joining, TurnsAwayAnotherSecret) {
  int strangers = 0;
  JoinOptions options = options_in(directory_);
  options.strangers = &strangers;
  EXPECT_TRUE(with_longer_limits([&](std::chrono::milliseconds limit) {
    auto root = join_later(id_, 0, 2, Deadline(2 * limit), options);
    const auto wrong =
        join_group_with(with_other_secret(id_), 1, 2, Deadline(limit), options_in(directory_));
    const JoinResult group = root.get();
    EXPECT_EQ(group.status().code(), StatusCode::kTimeout) << group.status().to_string();
    EXPECT_NE(group.status().message().find("rank 1"), std::string::npos);
    if (wrong.status().code() == StatusCode::kTimeout) return false;  // it never got through
    EXPECT_EQ(wrong.status().code(), StatusCode::kPermission) << wrong.status().to_string();
    return true;
  }));
  EXPECT_GT(strangers, 0);
}

// Negative control for the one above: without the check it would see a group.
TEST_P(Joining, NegativeControlWithoutTheCheckAnotherSecretGetsIn) {
  JoinOptions options = options_in(directory_);
  options.check_proofs = false;
  auto root = join_later(id_, 0, 2, soon(), options);
  const auto wrong = join_group_with(with_other_secret(id_), 1, 2, soon(), options);
  EXPECT_TRUE(wrong.is_ok()) << wrong.status().to_string();
  EXPECT_TRUE(root.get().is_ok());
}

TEST_P(Joining, IsNotHeldUpByStrangers) {
  int strangers = 0;
  JoinOptions options = options_in(directory_);
  options.strangers = &strangers;
  options.stranger_deadline = kNever;  // the group must not wait for it
  auto root = join_later(id_, 0, 2, soon(), options);
  std::vector<Fd> calls;
  for (int i = 0; i < 20; ++i) calls.push_back(dial_root(id_, directory_));
  const std::string noise(4096, 'n');
  for (int i = 0; i < 10; ++i) {
    EXPECT_GT(::send(calls[i].get(), noise.data(), noise.size(), MSG_NOSIGNAL), 0);
  }
  EXPECT_EQ(::send(calls[10].get(), "tuti", 4, MSG_NOSIGNAL), 4);  // half a greeting
  calls[11].reset();                                               // hangs up; the rest say nothing
  auto member = join_group_with(id_, 1, 2, soon(), options_in(directory_));
  ASSERT_TRUE(member.is_ok()) << member.status().to_string();
  JoinResult group = root.get();
  ASSERT_TRUE(group.is_ok()) << group.status().to_string();
  EXPECT_EQ(strangers, 20);
}

TEST_P(Joining, ThrowsOutWhoDoesNotProveItselfInTime) {
  int strangers = 0;
  JoinOptions options = options_in(directory_);
  options.strangers = &strangers;
  options.stranger_deadline = 200ms;
  auto root = join_later(id_, 0, 2, soon(), options);
  const Fd call = dial_root(id_, directory_);
  // Byte by byte does not help.
  std::array<char, 1> byte{};
  const Deadline deadline = soon();
  while (!deadline.passed()) {
    ::send(call.get(), "\0", 1, MSG_NOSIGNAL);
    const ssize_t got = ::recv(call.get(), byte.data(), 1, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno == ECONNRESET)) break;
    std::this_thread::sleep_for(20ms);
  }
  EXPECT_FALSE(deadline.passed());
  EXPECT_TRUE(join_group_with(id_, 1, 2, soon(), options_in(directory_)).is_ok());
  EXPECT_TRUE(root.get().is_ok());
  EXPECT_GE(strangers, 1);  // rank 1 as well where it is slow, and it calls again
}

TEST_P(Joining, SurvivesAFloodOfConnections) {
  auto root = join_later(id_, 0, 2, soon(), options_in(directory_));
  std::vector<Fd> calls;
  for (int i = 0; i < 300; ++i) calls.push_back(dial_root(id_, directory_));
  EXPECT_TRUE(join_group_with(id_, 1, 2, soon(), options_in(directory_)).is_ok());
  EXPECT_TRUE(root.get().is_ok());
}

TEST_P(Joining, NamesBothSizesWhereTheyDiffer) {
  auto root = join_later(id_, 0, 3, soon(), options_in(directory_));
  const auto other = join_group_with(id_, 1, 2, soon(), options_in(directory_));
  const JoinResult group = root.get();
  for (const Status& status : {other.status(), group.status()}) {
    EXPECT_EQ(status.code(), StatusCode::kMismatch) << status.to_string();
    EXPECT_NE(status.message().find("a group of 3"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("a group of 2"), std::string::npos) << status.message();
  }
  EXPECT_TRUE(directory_.entries().empty());
}

TEST_P(Joining, TurnsAwayASecondProcessOfTheSameRank) {
  auto root = join_later(id_, 0, 3, soon(), options_in(directory_));
  // The last rank listens nowhere, so only rank 0 can see that there are two of it.
  auto first = join_later(id_, 2, 3, soon(), options_in(directory_));
  auto second = join_later(id_, 2, 3, soon(), options_in(directory_));
  const auto ended = [](auto& join) { return join.wait_for(1ms) == std::future_status::ready; };
  while (!ended(first) && !ended(second)) continue;  // rank 1 is missing: this is the one too many
  auto middle = join_later(id_, 1, 3, soon(), options_in(directory_));
  const JoinResult a = first.get(), b = second.get();
  EXPECT_NE(a.is_ok(), b.is_ok()) << a.status().to_string() << " / " << b.status().to_string();
  EXPECT_EQ((a.is_ok() ? b : a).status().code(), StatusCode::kMismatch);
  EXPECT_TRUE(root.get().is_ok());
  EXPECT_TRUE(middle.get().is_ok());
}

TEST_P(Joining, WorksWithShortTransfersAndRefusedCalls) {
  FakeSockets sockets(real_sockets());
  sockets.max_transfer_bytes = 3;
  sockets.fail_connect_at = 0;
  JoinOptions options = options_in(directory_);
  options.sockets = &sockets;
  run_threads(3, [&](int rank) {
    auto group = join_or_fail(id_, rank, 3, options);
    ASSERT_NE(group, nullptr);
    const auto parts = group->all_gather(pattern(rank, 1000), soon());
    ASSERT_TRUE(parts.is_ok());
    for (int r = 0; r < 3; ++r) EXPECT_EQ((*parts)[r], pattern(r, 1000));
  });
}

TEST_P(Joining, MayUseOneIdAgainAndAgain) {
  run_threads(3, [&](int rank) {
    for (int round = 0; round < 10; ++round) {
      auto group = join_or_fail(id_, rank, 3, options_in(directory_));
      ASSERT_NE(group, nullptr);
      EXPECT_TRUE(group->barrier(soon()).is_ok());
    }
  });
  EXPECT_TRUE(directory_.entries().empty()) << directory_.entries().front();
}

TEST(JoiningLocally, TakesThePlaceOfDeadSockets) {
  const TemporaryDirectory directory;
  const GroupId id = *GroupId::local();
  const std::string place = directory.path() + "/" + id.address();
  ASSERT_EQ(::mkdir(place.c_str(), 0700), 0);
  for (const char* name : {"/r0", "/r1"}) {
    // Closed, not unlinked: as a killed process leaves it.
    ASSERT_TRUE(real_sockets().listen(*SocketAddress::unix_path(place + name)).is_ok());
  }
  run_threads(
      3, [&](int rank) { EXPECT_NE(join_or_fail(id, rank, 3, options_in(directory)), nullptr); });
  EXPECT_TRUE(directory.entries().empty());
}

TEST(JoiningLocally, RefusesADirectoryThatOthersCanEnter) {
  const TemporaryDirectory directory;
  const GroupId id = *GroupId::local();
  const std::string place = directory.path() + "/" + id.address();
  ASSERT_EQ(::mkdir(place.c_str(), 0700), 0);
  ASSERT_EQ(::chmod(place.c_str(), 0755), 0);
  const auto group = join_group_with(id, 0, 2, soon(), options_in(directory));
  EXPECT_EQ(group.status().code(), StatusCode::kPermission) << group.status().to_string();
}

TEST(JoiningLocally, RefusesASymbolicLink) {
  const TemporaryDirectory directory;
  const GroupId id = *GroupId::local();
  ASSERT_EQ(::mkdir((directory.path() + "/elsewhere").c_str(), 0700), 0);
  std::filesystem::create_directory_symlink(directory.path() + "/elsewhere",
                                            directory.path() + "/" + id.address());
  EXPECT_FALSE(join_group_with(id, 0, 2, Deadline(1s), options_in(directory)).is_ok());
}

TEST(JoiningLocally, RefusesAPathThatIsTooLong) {
  const TemporaryDirectory directory;
  JoinOptions options = options_in(directory);
  options.runtime_directory += "/" + std::string(90, 'd');
  ASSERT_EQ(::mkdir(options.runtime_directory.c_str(), 0700), 0);
  const auto group = join_group_with(*GroupId::local(), 0, 2, soon(), options);
  EXPECT_EQ(group.status().code(), StatusCode::kInvalidArgument) << group.status().to_string();
  EXPECT_NE(group.status().message().find("TUTTI_RUNTIME_DIR"), std::string::npos);
}

TEST(JoiningLocally, LetsInNoOtherUser) {
  const TemporaryDirectory directory;
  const GroupId id = *GroupId::local();
  FakeSockets sockets(real_sockets());
  sockets.foreign_user_id = 12345;
  int strangers = 0;
  JoinOptions options = options_in(directory);
  options.strangers = &strangers;
  options.sockets = &sockets;
  EXPECT_TRUE(with_longer_limits([&](std::chrono::milliseconds limit) {
    auto root = join_later(id, 0, 2, Deadline(2 * limit), options);
    const auto other = join_group_with(id, 1, 2, Deadline(limit), options_in(directory));
    EXPECT_FALSE(other.is_ok());
    EXPECT_EQ(root.get().status().code(), StatusCode::kTimeout);
    return strangers > 0;
  }));
}

TEST(JoiningByTcp, SaysThatThePortIsTaken) {
  const TemporaryDirectory directory;
  const GroupId id = make_id(GroupKind::kTcp);
  const auto taken = real_sockets().listen(address_of(id, directory, 0));
  ASSERT_TRUE(taken.is_ok());
  const auto group = join_group_with(id, 0, 2, Deadline(50ms), options_in(directory));
  EXPECT_EQ(group.status().code(), StatusCode::kUnavailable);
  EXPECT_NE(group.status().message().find("choose another port"), std::string::npos)
      << group.status().to_string();
}

// Every address of 127/8 is this host, but none of its interfaces' names: the way across hosts.
TEST(JoiningByTcp, WorksByNameAndListensOnlyOnLoopback) {
  const TemporaryDirectory directory;
  const auto id = GroupId::tcp("localhost", 0);
  ASSERT_TRUE(id.is_ok());
  run_threads(
      3, [&](int rank) { EXPECT_NE(join_or_fail(*id, rank, 3, options_in(directory)), nullptr); });
}

// The process that has made the id holds its port, and is none of the ranks.
TEST(JoiningByTcp, RankZeroMayBeInAnotherProcessThanTheIdIsFrom) {
  const GroupId id = make_id(GroupKind::kTcp);
  test::Children children(2, [&](int rank, test::Wire&) {
    const auto group = join_group(id, rank, 2, Deadline(test::kPatience));
    test::require_ok(group.status());
    test::require_ok((*group)->barrier(Deadline(test::kPatience)));
  });
  for (const auto& child : children.finish(2 * test::kPatience)) {
    EXPECT_TRUE(child.succeeded()) << child.describe_end();
  }
}

TEST(JoiningByTcp, GivesUpOnANameThatDoesNotExist) {
  const TemporaryDirectory directory;
  const auto id = GroupId::tcp("no-such-host.invalid", 4000);
  const auto group = join_group_with(*id, 1, 2, Deadline(200ms), options_in(directory));
  EXPECT_FALSE(group.is_ok());
  EXPECT_NE(group.status().message().find("no-such-host.invalid"), std::string::npos);
}

}  // namespace
}  // namespace tutti
