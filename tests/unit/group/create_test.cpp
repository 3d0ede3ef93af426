// How a group comes to be, and how it is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "drivers/cuda.hpp"
#include "support/check.hpp"
#include "support/group.hpp"
#include "support/lane.hpp"
#include "support/ranks.hpp"
#include "tutti/collectives.hpp"

namespace tutti::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Creates a group of threads in which rank 1 has other options; every rank's answer.
std::vector<Status> create_with(const CommunicatorOptions& usual, const CommunicatorOptions& odd) {
  const UniqueId id = take(UniqueId::create());
  std::vector<Status> answers(3);
  on_all_ranks(3, [&](int rank) {
    answers[static_cast<std::size_t>(rank)] =
        Communicator::create(id, rank, 3, rank == 1 ? odd : usual).status();
  });
  return answers;
}

TEST(CreateTest, ThreadsMeetByAUniqueId) {
  const UniqueId id = take(UniqueId::create());
  on_all_ranks(4, [&](int rank) {
    Communicator group = take(Communicator::create(id, rank, 4, kOnHost));
    EXPECT_EQ(group.rank(), rank);
    EXPECT_EQ(group.size(), 4);
    EXPECT_EQ(group.backend(), Backend::kHost);
    EXPECT_EQ(group.device(), -1);
    std::int64_t value = 1 << rank;
    EXPECT_TRUE(all_reduce(
        group, {.input = &value, .output = &value, .count = 1, .dtype = DataType::kInt64}));
    EXPECT_EQ(value, 15);
  });
}

TEST(CreateTest, DifferentOptionsAreAMismatchOnEveryRank) {
  CommunicatorOptions odd = kOnHost;
  odd.deterministic = true;
  for (const Status& answer : create_with(kOnHost, odd)) {
    EXPECT_EQ(answer.code(), StatusCode::kMismatch);
    EXPECT_THAT(answer.message(),
                HasSubstr("rank 1 has option deterministic=true, rank 0 has false;"));
  }
}

TEST(CreateTest, ARankThatNeverComesIsNamed) {
  const UniqueId id = take(UniqueId::create());
  CommunicatorOptions options = kOnHost;
  options.timeout = std::chrono::milliseconds(200);
  on_all_ranks(2, [&](int rank) {
    const Status answer = Communicator::create(id, rank, 3, options).status();
    EXPECT_EQ(answer.code(), StatusCode::kTimeout);
    EXPECT_THAT(answer.message(), HasSubstr("2"));
  });
}

TEST(CreateTest, RanksOutsideTheGroupAreRefusedAtOnce) {
  const UniqueId id = take(UniqueId::create());
  EXPECT_EQ(Communicator::create(id, 3, 3, kOnHost).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Communicator::create(id, -1, 3, kOnHost).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Communicator::create(id, 0, 0, kOnHost).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Communicator::create_in_process(0).status().code(), StatusCode::kInvalidArgument);
}

TEST(CreateTest, AProcessHasALimit) {
  const auto made = Communicator::create_in_process(257, kOnHost);
  EXPECT_EQ(made.status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(made.status().message(), HasSubstr("256"));
}

TEST(CreateTest, CudaWithoutAGpuSaysWhatIsMissing) {
  if (real_cuda() != nullptr && real_cuda()->device_count().is_ok()) GTEST_SKIP() << "has a GPU";
  CommunicatorOptions options = kOnHost;
  options.backend = Backend::kCuda;
  const auto made = Communicator::create_in_process(2, options);
  EXPECT_EQ(made.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(made.status().message(), AllOf(HasSubstr("backend cuda"), HasSubstr("rank 0")));
}

TEST(CreateTest, UniqueIdsTravelAsText) {
  const UniqueId id = take(UniqueId::create());
  EXPECT_LE(id.text().size(), 127u);
  EXPECT_EQ(take(UniqueId::from_text(id.text())).text(), id.text());
  EXPECT_NE(take(UniqueId::create()).text(), id.text());
  EXPECT_EQ(UniqueId::from_text("nonsense").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(UniqueId::create_tcp("127.0.0.1", 70000).status().code(), StatusCode::kInvalidArgument);
}

TEST(CreateTest, ACommunicatorMayBeMovedAndDestroyedInAnyOrder) {
  auto groups = take(Communicator::create_in_process(3, kOnHost));
  Communicator moved = std::move(groups[1]);
  groups.erase(groups.begin());
  groups.clear();
  EXPECT_EQ(moved.rank(), 1);
  EXPECT_TRUE(moved.status().is_ok());
}

// What a deterministic group may run, every group may; here all rows of the host are.
TEST(CreateTest, DeterministicGroupsRun) {
  CommunicatorOptions options = kOnHost;
  options.deterministic = true;
  auto groups = take(Communicator::create_in_process(1, options));
  EXPECT_TRUE(groups[0].plan("all_reduce", {.count = 100}).is_ok());
}

TEST(CreateTest, TheHostCapturesNothing) {
  auto groups = take(Communicator::create_in_process(1, kOnHost));
  EXPECT_EQ(groups[0].start_capture().code(), StatusCode::kUnsupported);
  EXPECT_EQ(groups[0].finish_capture().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(groups[0].prepare_nccl().code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace tutti::test
