// What a budget of multiprocessors makes of launches, and how ranks that differ in it are found.
// On fakes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <vector>

#include "device/kernel_args.hpp"
#include "fakes/fake_cuda.hpp"
#include "fakes/fake_nccl.hpp"
#include "group/communicator_impl.hpp"
#include "support/check.hpp"
#include "support/run_ranks.hpp"
#include "tutti/collectives.hpp"

namespace tutti::test {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int kRanks = 2;
constexpr std::size_t kCount = 1 << 20;

// What kernels of a rank were launched with.
struct Launched {
  std::vector<int> blocks;
  std::vector<std::uint32_t> signatures;
};
using Launches = std::array<Launched, kRanks>;
using OnRank = std::function<void(Communicator&)>;

Launches launches_of(const OnRank& run) {
  FakeCuda cuda(std::make_shared<FakeCudaWorld>(kRanks));
  std::mutex mutex;
  Launches launches;
  cuda.on_launch = [&](const CudaLaunch& launch) {
    const auto& work = *static_cast<const KernelArgs*>(launch.arguments[0]);
    const std::lock_guard lock(mutex);
    Launched& mine = launches[static_cast<std::size_t>(work.rank)];
    mine.blocks.push_back(launch.blocks);
    mine.signatures.push_back(work.signature);
    return Status::ok();
  };
  FakeNccl nccl;
  auto bootstraps = make_in_process_group(kRanks);
  const auto on_rank = [&](int rank) {
    Communicator group(take(CommunicatorImpl::create(
        std::move(bootstraps[static_cast<std::size_t>(rank)]),
        {.backend = Backend::kCuda, .device = rank}, {.cuda = &cuda, .nccl = &nccl})));
    run(group);
  };
  EXPECT_EQ(run_ranks(RankKind::kThreads, kRanks, on_rank), "");
  return launches;
}

// `memory` has room for input and output.
Status reduce(Communicator& group, const SymmetricMemory& memory, const CallOptions& options) {
  auto* const input = static_cast<float*>(memory.data());
  return all_reduce(
      group, {.input = input, .output = input + kCount, .count = kCount, .options = options});
}

Launches reduced(const std::array<CallOptions, kRanks>& options) {
  return launches_of([&](Communicator& group) {
    const SymmetricMemory memory = take(group.allocate(2 * kCount * sizeof(float)));
    require_ok(reduce(group, memory, options[static_cast<std::size_t>(group.rank())]));
  });
}

TEST(SmBudget, CapsWhatIsLaunched) {
  for (const Launched& rank : reduced({{{.sm_budget = 5}, {.sm_budget = 5}}})) {
    EXPECT_THAT(rank.blocks, SizeIs(1));
    EXPECT_THAT(rank.blocks, Each(5));
  }
  const CallOptions more{.algorithm = "two_shot", .blocks = 64, .sm_budget = 7};
  for (const Launched& rank : reduced({more, more})) EXPECT_THAT(rank.blocks, Each(7));
  const CallOptions free{.algorithm = "two_shot", .blocks = 64};
  for (const Launched& rank : reduced({free, free})) EXPECT_THAT(rank.blocks, Each(64));
}

// One communicator, one size, and another plan for each budget: what is cached tells them apart.
TEST(SmBudget, IsAPartOfWhatPlansAreKeptBy) {
  const Launches launches = launches_of([](Communicator& group) {
    const SymmetricMemory memory = take(group.allocate(2 * kCount * sizeof(float)));
    for (const int budget : {3, 9, 3}) require_ok(reduce(group, memory, {.sm_budget = budget}));
  });
  for (const Launched& rank : launches) EXPECT_EQ(rank.blocks, (std::vector{3, 9, 3}));
}

TEST(SmBudget, OfNoneLaunchesNothing) {
  const Launches launches = launches_of([](Communicator& group) {
    const SymmetricMemory memory = take(group.allocate(3 * kCount));
    auto* const input = static_cast<std::byte*>(memory.data());
    require_ok(all_gather(group, {.input = input,
                                  .output = input + kCount,
                                  .count = kCount,
                                  .dtype = DataType::kUint8,
                                  .options = {.blocks = 64, .sm_budget = 0}}));
    const Status refused = reduce(group, memory, {.sm_budget = 0});
    require(refused.code() == StatusCode::kUnsupported, refused.to_string());
    const Status wrong = reduce(group, memory, {.sm_budget = -1});
    require(wrong.code() == StatusCode::kInvalidArgument, wrong.to_string());
  });
  for (const Launched& rank : launches) EXPECT_THAT(rank.blocks, IsEmpty());
}

// Ranks compare signatures when they meet: a budget that changes the row or the grid shows there.
// One that changes neither is no difference.
TEST(SmBudget, RanksThatDifferInItDifferInTheirSignatures) {
  const auto agree = [](const CallOptions& first, const CallOptions& second) {
    const Launches launches = reduced({first, second});
    return launches[0].signatures == launches[1].signatures;
  };
  EXPECT_FALSE(agree({.sm_budget = 4}, {.sm_budget = 8}));
  EXPECT_FALSE(agree({.algorithm = "two_shot", .sm_budget = 4}, {.algorithm = "two_shot"}));
  EXPECT_TRUE(agree({.sm_budget = 4}, {.sm_budget = 4}));
  EXPECT_TRUE(agree({.sm_budget = 1000}, {.algorithm = "", .sm_budget = 2000}));
}

TEST(SmBudget, APlanCanBeAskedForWithIt) {
  (void)launches_of([](Communicator& group) {
    const auto plan = [&](std::optional<int> budget) {
      return take(group.plan("all_gather", {.count = kCount, .sm_budget = budget}));
    };
    require(plan(0).algorithm == "all_gather/copy_engine", plan(0).algorithm);
    require(plan(2).blocks == 2 && plan(std::nullopt).blocks > 2, "blocks");
    const std::string text = explain(group, "all_gather", {.count = kCount, .sm_budget = 0});
    require(text.find("the budget is 0") != std::string::npos, text);
  });
}

}  // namespace
}  // namespace tutti::test
