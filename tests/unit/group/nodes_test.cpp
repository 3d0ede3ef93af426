// Groups whose ranks do not all share memory: what they can still do, and what they are told.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "fakes/fake_cuda.hpp"
#include "fakes/fake_nccl.hpp"
#include "group/communicator_impl.hpp"
#include "support/check.hpp"
#include "support/group.hpp"
#include "support/ranks.hpp"
#include "support/run_ranks.hpp"
#include "tutti/collectives.hpp"
#include "tutti/one_sided.hpp"

namespace tutti::test {
namespace {

using ::testing::HasSubstr;

constexpr int kMany = 64, kParts = 4;

Status sum_of_ranks(Communicator& group, std::int64_t& value) {
  return all_reduce(group,
                    {.input = &value, .output = &value, .count = 1, .dtype = DataType::kInt64});
}

void expect_refusal(const Status& status, StatusCode code, std::string_view text) {
  require(status.code() == code && status.message().find(text) != std::string::npos,
          status.to_string());
}

TEST(NodesTest, ALargeGroupIsMadeAndItsPartsWork) {
  auto groups = take(Communicator::create_in_process(kMany, kOnHost));
  on_all_ranks(kMany, [&](int rank) {
    Communicator& world = groups[static_cast<std::size_t>(rank)];
    std::int64_t value = rank;
    expect_refusal(sum_of_ranks(world, value), StatusCode::kUnsupported,
                   "supports at most 16 ranks per node, and a node has 64");
    EXPECT_TRUE(world.status().is_ok()) << "a refusal is no failure";
    Communicator part = std::move(*take(world.split(rank % kParts, rank)));
    EXPECT_EQ(part.size(), kMany / kParts);
    require_ok(sum_of_ranks(part, value));
    const int terms = kMany / kParts;
    EXPECT_EQ(value, terms * (rank % kParts) + kParts * terms * (terms - 1) / 2);
  });
}

TEST(NodesTest, ALargeGroupSaysThatItHasNoSymmetricMemory) {
  auto groups = take(Communicator::create_in_process(17, kOnHost));
  float value = 0;
  EXPECT_EQ(groups[0].allocate(1024).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(groups[0].allocate(1024).status().message(),
            "no symmetric memory: 17 ranks, and at most 16 share memory");
  EXPECT_THAT(groups[0].register_memory(&value, sizeof value).status().message(),
              HasSubstr("at most 16 share memory"));
  EXPECT_THAT(signal(groups[0], {.peer = 1}).message(), HasSubstr("at most 16 share memory"));
  EXPECT_EQ(send(groups[0], {.buffer = &value, .count = 1, .peer = 1}).code(),
            StatusCode::kUnsupported);
  EXPECT_EQ(barrier(groups[0]).code(), StatusCode::kUnsupported);
}

// Each rank is a process of its own.
void expect_large_group(const UniqueId& id) {
  const auto on_rank = [&](int rank) {
    Communicator world = take(Communicator::create(id, rank, kMany, kOnHost));
    std::int64_t value = 1;
    expect_refusal(sum_of_ranks(world, value), StatusCode::kUnsupported,
                   "at most 16 ranks per node");
    auto part = take(world.split(rank / kMaxRanks, 0));
    require_ok(sum_of_ranks(*part, value));
    require(value == kMaxRanks, std::to_string(value));
  };
  EXPECT_EQ(run_ranks(RankKind::kProcesses, kMany, on_rank), "");
}

TEST(NodesTest, ALargeGroupOfProcessesMeetsByUnixSockets) {
  expect_large_group(take(UniqueId::create()));
}

TEST(NodesTest, ALargeGroupOfProcessesMeetsByTcp) {
  expect_large_group(take(UniqueId::create_tcp("127.0.0.1", 0)));
}

// What the transfers find is in the topology of every rank.
TEST(NodesTest, APairOnWhichDataIsLostIsKnown) {
  auto world = std::make_shared<FakeCudaWorld>(3);
  world->lossy = {{2, 1}};
  FakeCuda cuda(world);
  FakeNccl nccl;
  auto bootstraps = make_in_process_group(3);
  on_all_ranks(3, [&](int rank) {
    const Communicator group(take(CommunicatorImpl::create(
        std::move(bootstraps[static_cast<std::size_t>(rank)]),
        {.backend = Backend::kCuda, .device = rank}, {.cuda = &cuda, .nccl = &nccl})));
    const Topology& topology = group.impl().topology();
    EXPECT_EQ(topology.pair_without(Reach::kPeerMemory), std::pair(2, 1));
    EXPECT_EQ(topology.reach(1, 2), peer_ways(Backend::kCuda));
    EXPECT_THAT(explain(group, "all_reduce", {.count = 100}),
                HasSubstr("rank 2 cannot access rank 1"));
  });
}

// What `test` says, in a process of its own: settings are read once, and in this suite no test
// reads them before.
std::string with_topology(const char* setting, const std::function<void()>& test) {
  const auto run = [&] {
    ::setenv("TUTTI_TOPOLOGY", setting, 1);
    ::setenv("TUTTI_UCX_LIBRARY", "/nonexistent/libucp.so.0", 1);  // no network either
    test();
  };
  return run_isolated(run, kPatience);
}

TEST(EmulatedNodesTest, RanksOfTwoNodesAreRefusedAndThoseOfOneAreNot) {
  EXPECT_EQ(with_topology("vnode:2",
                          [] {
                            auto groups = take(Communicator::create_in_process(4, kOnHost));
                            on_all_ranks(4, [&](int rank) {
                              Communicator& world = groups[static_cast<std::size_t>(rank)];
                              std::int64_t value = rank;
                              expect_refusal(
                                  sum_of_ranks(world, value), StatusCode::kUnsupported,
                                  "needs access to the memory of all ranks, which are on 2 nodes");
                              expect_refusal(world.allocate(64).status(), StatusCode::kUnavailable,
                                             "no symmetric memory: ranks are on 2 nodes");
                              const int node = world.impl().topology().node(rank);
                              require(node == rank / 2, "another node");
                              Communicator half = std::move(*take(world.split(node, rank)));
                              require_ok(sum_of_ranks(half, value));
                              require(value == (node == 0 ? 1 : 5), std::to_string(value));
                            });
                          }),
            "");
}

// A part keeps the nodes of the whole, however it is made.
TEST(EmulatedNodesTest, APartOfAGroupHasTheNodesOfTheWhole) {
  EXPECT_EQ(with_topology("vnode:2",
                          [] {
                            auto groups = take(Communicator::create_in_process(4, kOnHost));
                            on_all_ranks(4, [&](int rank) {
                              auto across = take(
                                  groups[static_cast<std::size_t>(rank)].split(rank % 2, rank));
                              require(across->impl().topology().nodes() == 2, "not apart");
                              auto alone = take(across->split(across->rank(), 0));
                              require(alone->impl().topology().nodes() == 1, "not alone");
                              std::int64_t value = rank;
                              require_ok(sum_of_ranks(*alone, value));
                            });
                          }),
            "");
}

TEST(EmulatedNodesTest, NoLocalTakesAllRanksApart) {
  EXPECT_EQ(with_topology("nolocal",
                          [] {
                            auto groups = take(Communicator::create_in_process(3, kOnHost));
                            std::int64_t value = 0;
                            expect_refusal(sum_of_ranks(groups[0], value), StatusCode::kUnsupported,
                                           "on 3 nodes");
                            auto alone = take(Communicator::create_in_process(1, kOnHost));
                            require_ok(sum_of_ranks(alone[0], value));
                          }),
            "");
}

TEST(EmulatedNodesTest, LayoutsThatCannotBeAreRefused) {
  const auto refusal = [](const char* setting, const char* text) {
    return with_topology(setting, [&] {
      expect_refusal(Communicator::create_in_process(4, kOnHost).status(),
                     StatusCode::kInvalidArgument, text);
    });
  };
  EXPECT_EQ(refusal("rings", "known are system, nolocal, vnode:K"), "");
  EXPECT_EQ(refusal("vnode:3", "4 ranks do not make 3 nodes"), "");
}

TEST(EmulatedNodesTest, RanksAgreeOnTheLayout) {
  const UniqueId id = take(UniqueId::create());
  const auto rank = [&](int number) {
    ::setenv("TUTTI_TOPOLOGY", number == 0 ? "system" : "nolocal", 1);
    expect_refusal(Communicator::create(id, number, 2, kOnHost).status(), StatusCode::kMismatch,
                   "TUTTI_TOPOLOGY");
  };
  EXPECT_EQ(run_ranks(RankKind::kProcesses, 2, rank), "");
}

// Calls body(group) for each of four ranks on GPUs that do not exist.
void on_gpus(NcclDriver* nccl, const std::function<void(Communicator&)>& body) {
  FakeCuda cuda(std::make_shared<FakeCudaWorld>(4));
  cuda.on_launch = [](const CudaLaunch&) { return Status::ok(); };
  auto bootstraps = make_in_process_group(4);
  on_all_ranks(4, [&](int rank) {
    Communicator group(take(CommunicatorImpl::create(
        std::move(bootstraps[static_cast<std::size_t>(rank)]),
        {.backend = Backend::kCuda, .device = rank}, {.cuda = &cuda, .nccl = nccl})));
    body(group);
  });
}

TEST(EmulatedNodesTest, NcclRunsBetweenNodes) {
  EXPECT_EQ(with_topology(
                "vnode:2",
                [] {
                  FakeNccl nccl;
                  on_gpus(&nccl, [](Communicator& group) {
                    const auto plan = take(group.plan("all_reduce", {.count = 100}));
                    require(plan.algorithm == "all_reduce/nccl", plan.algorithm);
                    float value = 0;
                    require_ok(all_reduce(group, {.input = &value, .output = &value, .count = 1}));
                    require(!group.impl().topology().peer_access_within_nodes(),
                            "nobody verified it");
                    auto half = take(group.split(group.rank() / 2, 0));
                    require(half->impl().topology().all_reach(Reach::kCopyEngine), "no reach");
                    require_ok(half->allocate(1024).status());
                  });
                }),
            "");
}

TEST(EmulatedNodesTest, WithoutNcclTheFirstCallSaysThatNeitherIsThere) {
  EXPECT_EQ(with_topology("vnode:2",
                          [] {
                            on_gpus(nullptr, [](Communicator& group) {
                              float value = 0;
                              const Status status = all_reduce(
                                  group, {.input = &value, .output = &value, .count = 1});
                              expect_refusal(status, StatusCode::kUnsupported, "on 2 nodes");
                              expect_refusal(status, StatusCode::kUnsupported, "needs NCCL");
                              expect_refusal(group.start_capture(), StatusCode::kOk, "");
                              require_ok(group.finish_capture());
                            });
                          }),
            "");
}

}  // namespace
}  // namespace tutti::test
