// How a group comes to be, and how it is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "drivers/cuda.hpp"
#include "fakes/fake_cuda.hpp"
#include "group/in_process.hpp"
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

TEST(CreateTest, DevicesAreCheckedRankByRank) {
  const auto made = [](const std::vector<int>& devices, Backend backend) {
    return Communicator::create_in_process(devices, {.backend = backend}).status();
  };
  EXPECT_TRUE(made({-1, -1}, Backend::kHost).is_ok());
  EXPECT_EQ(made({}, Backend::kHost).code(), StatusCode::kInvalidArgument);
  const Status on_host = made({-1, 0}, Backend::kHost);
  EXPECT_EQ(on_host.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(on_host.message(), HasSubstr("device 0 of rank 1: the host backend uses no GPU"));
  for (const Backend backend : {Backend::kAuto, Backend::kCuda, Backend::kHost}) {
    const Status below = made({-1, -2}, backend);
    EXPECT_EQ(below.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(below.message(), HasSubstr("device -2 of rank 1"));
  }
}

// On fakes of three GPUs.
TEST(CreateTest, RanksOfAProcessTakeTheDevicesThatAreNamed) {
  FakeCuda cuda(std::make_shared<FakeCudaWorld>(3));
  const auto made = [&](const std::vector<int>& devices) {
    return create_in_process(devices, {.backend = Backend::kCuda, .device = 7}, {.cuda = &cuda});
  };
  const auto ranks = take(made({2, -1, 0}));
  ASSERT_EQ(ranks.size(), 3u);
  EXPECT_EQ(ranks[0]->device(), 2);
  EXPECT_EQ(ranks[1]->device(), 1);
  EXPECT_EQ(ranks[2]->device(), 0);
  const Status unknown = made({0, 3}).status();
  EXPECT_EQ(unknown.code(), StatusCode::kUnavailable);
  EXPECT_THAT(unknown.message(), HasSubstr("rank 1 has no GPU"));
  const Status twice = made({1, 0, 1}).status();
  EXPECT_EQ(twice.code(), StatusCode::kUnavailable);
  EXPECT_THAT(twice.message(), HasSubstr("ranks 0 and 2 share one GPU (TUTTI_SHARE_GPUS=1"));
}

TEST(CreateTest, ThreadsMeetAtAPortOfTheSystems) {
  const UniqueId id = take(UniqueId::create_tcp("127.0.0.1", 0));
  EXPECT_EQ(id.text().find("127.0.0.1:0"), std::string::npos);
  const UniqueId other = take(UniqueId::create_tcp("127.0.0.1", 0));
  on_all_ranks(4, [&](int rank) {
    const UniqueId& mine = rank < 2 ? id : other;
    EXPECT_EQ(take(Communicator::create(mine, rank % 2, 2, kOnHost)).size(), 2);
  });
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
