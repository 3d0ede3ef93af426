// Ranks that share a GPU, which somebody has to ask for. On fakes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>

#include "fakes/fake_cuda.hpp"
#include "fakes/fake_nccl.hpp"
#include "group/communicator_impl.hpp"
#include "support/check.hpp"
#include "support/run_ranks.hpp"
#include "tutti/collectives.hpp"

namespace tutti::test {
namespace {

using ::testing::HasSubstr;

constexpr int kSharing = 4;

// What went wrong on any rank of a group on so many GPUs. `launched`: with how many blocks.
std::string on_gpus(int gpus, const std::function<void(Communicator&)>& f,
                    const std::function<void(int)>& launched = {}) {
  FakeCuda cuda(std::make_shared<FakeCudaWorld>(gpus));
  cuda.on_launch = [&](const CudaLaunch& launch) {
    if (launched) launched(launch.blocks);
    return Status::ok();
  };
  FakeNccl nccl;
  auto bootstraps = make_in_process_group(kSharing);
  const auto on_rank = [&](int rank) {
    Communicator group(take(CommunicatorImpl::create(
        std::move(bootstraps[static_cast<std::size_t>(rank)]),
        {.backend = Backend::kCuda, .device = rank % gpus}, {.cuda = &cuda, .nccl = &nccl})));
    f(group);
  };
  return run_ranks(RankKind::kThreads, kSharing, on_rank);
}

Status reduce(Communicator& group, const CallOptions& options) {
  constexpr std::size_t kCount = 1 << 20;
  const SymmetricMemory memory = take(group.allocate(2 * kCount * sizeof(float)));
  auto* const input = static_cast<float*>(memory.data());
  return all_reduce(
      group, {.input = input, .output = input + kCount, .count = kCount, .options = options});
}

// What `test` says, in a process of its own: settings are read once.
std::string with_sharing(bool allowed, const std::function<std::string()>& test) {
  const auto run = [&] {
    ::setenv("TUTTI_SHARE_GPUS", allowed ? "1" : "0", 1);
    const std::string wrong = test();
    require(wrong.empty(), wrong);
  };
  return run_isolated(run, kPatience);
}

TEST(SharedGpu, IsAnErrorThatSaysHowToAllowIt) {
  EXPECT_THAT(with_sharing(false, [] { return on_gpus(1, [](Communicator&) {}); }),
              HasSubstr("ranks 0 and 1 share one GPU (TUTTI_SHARE_GPUS=1 allows it)"));
}

TEST(SharedGpu, BlocksOfAllRanksHaveRoomOnIt) {
  const auto launched = [](int gpus, int most) {
    std::atomic<int> right = 0;
    const auto seen = [&](int blocks) { right += blocks == most ? 1 : 100; };
    const auto run = [](Communicator& group) {
      require_ok(reduce(group, {.algorithm = "two_shot", .blocks = 128}));
    };
    const std::string wrong = on_gpus(gpus, run, seen);
    return right == kSharing ? wrong : wrong + " other grids";
  };
  // Of 132 multiprocessors, half of a quarter, in eights.
  EXPECT_EQ(with_sharing(true, [&] { return launched(1, 16); }), "");
  EXPECT_EQ(with_sharing(true, [&] { return launched(2, 32); }), "");
  EXPECT_EQ(with_sharing(true, [&] { return launched(kSharing, 128); }), "");
}

TEST(SharedGpu, LeavesNothingToNcclAndToNoTable) {
  const auto look = [](Communicator& group) {
    const Topology& topology = group.impl().topology();
    require(topology.ranks_per_gpu == kSharing && !topology.nccl, to_text(topology));
    require(topology.gpu.ends_with(", 4 ranks on one"), topology.gpu);
    const Status refused = reduce(group, {.algorithm = "nccl"});
    require(refused.message().find("ranks share one") != std::string::npos, refused.message());
  };
  EXPECT_EQ(with_sharing(true, [&] { return on_gpus(1, look); }), "");
}

}  // namespace
}  // namespace tutti::test
