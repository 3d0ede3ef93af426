// The pipelined algorithms of all_gather_matmul, and `fused`, with threads as ranks on the host:
// what they compute, what the group keeps of them, and what it says where ranks differ or do not
// come.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <barrier>
#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/check.hpp"
#include "support/group.hpp"
#include "support/ranks.hpp"
#include "support/told.hpp"
#include "tutti/tutti.hpp"
#include "unit/api/groups.hpp"
#include "unit/api/layer_of_rank.hpp"

namespace tutti::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr std::array<std::string_view, 3> kPipelinedAlgorithms = {
    "pipelined_shift", "pipelined_ring", "pipelined_tiles"};
constexpr std::array<std::string_view, 2> kPipelineProtocols = {"get", "put"};
constexpr std::size_t kPipelinedSymmetricBytes = 16 * KiB;

std::string pipelined_text(const Layer& layer) {
  return fmt::format("{}, {}, {} streams, {} tiles: {}", layer.algorithm, layer.pipeline.protocol,
                     layer.pipeline.streams, layer.pipeline.tiles, layer.text());
}

// One for each algorithm and protocol, and `fused`.
std::vector<Layer> each_pipeline(const Layer& like) {
  std::vector<Layer> all;
  for (const std::string_view algorithm : kPipelinedAlgorithms) {
    for (const std::string_view protocol : kPipelineProtocols) {
      all.push_back(like);
      all.back().algorithm = algorithm;
      all.back().pipeline.protocol = protocol;
    }
  }
  all.push_back(like);
  all.back().algorithm = "fused";
  return all;
}

// Every algorithm, protocol, m and type; the rest in turn.
std::vector<Layer> pipelined_layers(int ranks) {
  std::vector<Layer> all;
  unsigned turn = 0;
  for (const std::size_t m : {1, 3, 7, 2 * ranks, 23}) {
    for (const DataType dtype : {DataType::kFloat32, DataType::kFloat16, DataType::kBfloat16}) {
      for (Layer layer : each_pipeline({.m = m, .k = 20, .dtype = dtype})) {
        const unsigned bits = turn * 5 / 3;
        if ((bits & 1) != 0) layer.layout = MatrixLayout::kColumnMajor;
        layer.n =
            (bits & 2) != 0 ? std::vector<std::size_t>{9} : std::vector<std::size_t>{4, 0, 13};
        layer.bias = (bits & 4) != 0;
        layer.gathered = (bits & 8) != 0;
        layer.buffers = static_cast<LayerBuffers>(turn % 3);
        layer.pipeline.streams = 1 + static_cast<int>(turn % 4);
        layer.pipeline.tiles = 1 + static_cast<int>(turn % 3);
        all.push_back(layer);
        ++turn;
      }
    }
  }
  return all;
}

class PipelinedAllGatherMatmul : public ::testing::TestWithParam<int> {
 protected:
  template <class Body>
  void on_group(const Body& body) {
    auto groups = groups_of(GetParam());
    on_all_ranks(GetParam(), [&](int rank) {
      Communicator& group = groups[static_cast<std::size_t>(rank)];
      const SymmetricMemory memory = take(group.allocate(kPipelinedSymmetricBytes));
      body(group, static_cast<std::byte*>(memory.data()));
    });
  }
};

TEST_P(PipelinedAllGatherMatmul, MultipliesTheRowsOfAllRanks) {
  on_group([](Communicator& group, std::byte* symmetric) {
    int salt = 0;
    for (const Layer& layer : pipelined_layers(group.size())) {
      LayerOfRank side(layer, group, symmetric);
      side.fill(++salt);
      require_ok(all_gather_matmul(group, side.call()));
      side.expect_right(pipelined_text(layer));
    }
  });
}

// Nothing is between the calls but new numbers, and now and then a delay. What the first call has
// made is used again.
TEST_P(PipelinedAllGatherMatmul, CallsFollowEachOther) {
  on_group([](Communicator& group, std::byte* symmetric) {
    std::minstd_rand random(static_cast<unsigned>(group.rank()) + 1);
    for (const Layer& layer : each_pipeline({.m = 11, .n = {7, 2}, .gathered = true})) {
      LayerOfRank side(layer, group, symmetric);
      Communicator::Counters counters;
      for (int salt = 0; salt < 4; ++salt) {
        if (random() % 2 == 0) std::this_thread::sleep_for(random() % 300 * 1us);
        side.fill(salt);
        require_ok(all_gather_matmul(group, side.call()));
        side.expect_right(fmt::format("{}, call {}", pipelined_text(layer), salt));
        if (salt == 0) counters = group.counters();
      }
      EXPECT_EQ(group.counters(), counters);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, PipelinedAllGatherMatmul, ::testing::Range(1, 6));

// More than one panel of the host's matmul.
TEST(PipelinedAllGatherMatmulHost, MatricesMayBeLarge) {
  auto groups = groups_of(3);
  on_all_ranks(3, [&](int rank) {
    for (const std::string_view algorithm : kPipelinedAlgorithms) {
      const Layer layer = {.m = 1030, .k = 600, .n = {8}, .algorithm = algorithm};
      LayerOfRank side(layer, groups[static_cast<std::size_t>(rank)], nullptr);
      side.fill(1);
      require_ok(all_gather_matmul(groups[static_cast<std::size_t>(rank)], side.call()));
      side.expect_right(pipelined_text(layer));
    }
  });
}

TEST(PipelinedAllGatherMatmulHost, RanksMayBeProcesses) {
  const auto calls = [](Rank& rank) {
    for (const Layer& layer : each_pipeline({.m = 7, .gathered = true})) {
      LayerOfRank side(layer, rank.group, nullptr);
      for (int salt = 0; salt < 2; ++salt) {
        side.fill(salt);
        require_ok(all_gather_matmul(rank.group, side.call()));
        side.expect_right(pipelined_text(layer));
      }
    }
    require(!::testing::Test::HasFailure(), "wrong results");  // the process tells nothing else
  };
  EXPECT_EQ(run_group({.kind = RankKind::kProcesses, .ranks = 3}, calls), "");
}

// Whether the gathered A is an output, where it lies, and the biases are each rank's own, and may
// change from call to call.
TEST(PipelinedAllGatherMatmulHost, OutputsAreEachRanksOwn) {
  auto groups = groups_of(3);
  on_all_ranks(3, [&](int rank) {
    Communicator& group = groups[static_cast<std::size_t>(rank)];
    for (Layer layer : each_pipeline({.m = 8})) {
      Communicator::Counters counters;
      for (int call = 0; call < 3; ++call) {
        layer.gathered = (rank + call) % 3 == 1;
        layer.bias = (rank + call) % 3 != 0;
        LayerOfRank side(layer, group, nullptr);
        side.fill(call);
        require_ok(all_gather_matmul(group, side.call()));
        side.expect_right(pipelined_text(layer));
        if (call == 0) counters = group.counters();
      }
      EXPECT_EQ(group.counters(), counters);
    }
  });
}

// The workspace is for other algorithms.
TEST(PipelinedAllGatherMatmulHost, TheWorkspaceStaysAsItIs) {
  auto groups = groups_of(2);
  on_all_ranks(2, [&](int rank) {
    Communicator& group = groups[static_cast<std::size_t>(rank)];
    for (const std::string_view algorithm : {"pipelined_ring", "fused"}) {
      LayerOfRank side({.algorithm = algorithm}, group, nullptr);
      side.fill(1);
      const AllGatherMatmul call = side.call();
      require_ok(all_gather_matmul(group, call));
      const auto* bytes = static_cast<const unsigned char*>(call.workspace);
      for (std::size_t i = 0; i < call.workspace_bytes; ++i) ASSERT_EQ(bytes[i], 0xff);
    }
  });
}

// Of one rank that calls, and no other.
TEST(PipelinedAllGatherMatmulHost, WithoutKOrRowsNobodyIsAsked) {
  auto groups = groups_of(2);
  std::array<float, 6> c{9, 9, 9, 9, 9, 9};
  const std::array<float, 3> bias{1, 2, 3};
  AllGatherMatmul call = {.c = c.data(),
                          .bias = bias.data(),
                          .m = 2,
                          .n = 3,
                          .k = 0,
                          .dtype = DataType::kFloat32,
                          .algorithm = "pipelined_tiles"};
  require_ok(all_gather_matmul(groups[1], call));
  EXPECT_EQ(c, (std::array<float, 6>{1, 2, 3, 1, 2, 3}));
  call.m = 0;
  require_ok(all_gather_matmul(groups[1], call));
  EXPECT_EQ(take(tutti::plan(groups[1], call)).algorithm, "");
}

TEST(PipelinedAllGatherMatmulHost, WithoutColumnsItGathersAsUnfused) {
  auto groups = groups_of(2);
  on_all_ranks(2, [&](int rank) {
    Communicator& group = groups[static_cast<std::size_t>(rank)];
    LayerOfRank side({.m = 5, .n = {0}, .gathered = true, .algorithm = "pipelined_shift"}, group,
                     nullptr);
    side.fill(3);
    require_ok(all_gather_matmul(group, side.call()));
    side.expect_right("without columns");
  });
}

std::string pipelined_config(Communicator& group, const Layer& layer) {
  LayerOfRank side(layer, group, nullptr);
  const AllGatherMatmulPlan plan = take(tutti::plan(group, side.call()));
  EXPECT_EQ(plan.algorithm, layer.algorithm);
  return plan.config;
}

TEST(PipelinedAllGatherMatmulHost, PlansAndExplanations) {
  auto groups = groups_of(2);
  EXPECT_EQ(pipelined_config(groups[0], {.algorithm = "pipelined_ring"}),
            "pipelined_ring, get, 4 streams, host_matmul");
  EXPECT_EQ(pipelined_config(groups[0], {.algorithm = "pipelined_tiles",
                                         .pipeline = {.protocol = "put", .streams = 1}}),
            "pipelined_tiles, put, 8 tiles, 1 stream, host_matmul");
  LayerOfRank side({.algorithm = "pipelined_shift"}, groups[0], nullptr);
  EXPECT_THAT(take(explain(groups[0], side.call())),
              HasSubstr("    unfused          can run it\n"
                        "  * pipelined_shift  can run it; the call names it\n"
                        "    pipelined_ring   can run it\n"
                        "    pipelined_tiles  can run it\n"
                        "    fused            can run it\n"));
}

TEST(PipelinedAllGatherMatmulHost, RefusesOptions) {
  auto groups = groups_of(1);
  const auto refusal = [&](AllGatherMatmulPipeline pipeline) {
    LayerOfRank side({.algorithm = "pipelined_tiles", .pipeline = pipeline}, groups[0], nullptr);
    const Status status = all_gather_matmul(groups[0], side.call());
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(tutti::plan(groups[0], side.call()).status().message(), status.message());
    return status.message();
  };
  EXPECT_THAT(refusal({.protocol = "push"}), HasSubstr("'push'"));
  EXPECT_THAT(refusal({.mover = "hand"}), HasSubstr("unknown mover 'hand'"));
  EXPECT_EQ(refusal({.streams = 0}), "all_gather_matmul: pipeline.streams is 0: from 1 to 16");
  EXPECT_EQ(refusal({.streams = 17}), "all_gather_matmul: pipeline.streams is 17: from 1 to 16");
  EXPECT_EQ(refusal({.tiles = 0}), "all_gather_matmul: pipeline.tiles is 0: from 1 to 64");
  EXPECT_EQ(refusal({.tiles = 65}), "all_gather_matmul: pipeline.tiles is 65: from 1 to 64");
  EXPECT_TRUE(groups[0].status().is_ok());
}

TEST(PipelinedAllGatherMatmulHost, NeedsSymmetricMemory) {
  auto groups = groups_of(17);  // more than share memory
  for (const std::string_view algorithm : {"pipelined_ring", "fused"}) {
    LayerOfRank side({.m = 17, .algorithm = algorithm}, groups[0], nullptr);
    side.fill(1);
    const Status status = all_gather_matmul(groups[0], side.call());
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    EXPECT_THAT(status.message(), testing::StartsWith(fmt::format(
                                      "all_gather_matmul/{}: no symmetric memory: ", algorithm)));
    EXPECT_THAT(take(explain(groups[0], side.call())),
                HasSubstr(fmt::format("  * {:<15}  no symmetric memory: ", algorithm)));
    EXPECT_TRUE(groups[0].status().is_ok());
  }
}

// Those that were used last are kept, of whatever algorithm.
TEST(PipelinedAllGatherMatmulHost, KeepsSixteenDescriptions) {
  auto groups = groups_of(2);
  on_all_ranks(2, [&](int rank) {
    Communicator& group = groups[static_cast<std::size_t>(rank)];
    // Whether the ranks asked each other something.
    const auto asks = [&](std::size_t m) {
      const Communicator::Counters before = group.counters();
      const std::string_view algorithm = m % 4 == 1 ? "fused" : "pipelined_shift";
      LayerOfRank side({.m = m, .algorithm = algorithm}, group, nullptr);
      side.fill(static_cast<int>(m));
      require_ok(all_gather_matmul(group, side.call()));
      side.expect_right(fmt::format("m {}", m));
      const Communicator::Counters after = group.counters();
      EXPECT_EQ(after.allocations > before.allocations, after.exchanges > before.exchanges);
      return after.exchanges > before.exchanges;
    };
    for (std::size_t m = 1; m <= 16; ++m) EXPECT_TRUE(asks(m)) << m;
    EXPECT_FALSE(asks(1));
    EXPECT_TRUE(asks(17));  // in the place of 2
    EXPECT_FALSE(asks(1));
    EXPECT_FALSE(asks(3));
    EXPECT_TRUE(asks(2));  // in the place of 4
    EXPECT_FALSE(asks(5));
    EXPECT_TRUE(asks(4));
  });
}

struct PipelinedDifference {
  Layer there;
  std::string there_text;
};

class PipelinedMismatch : public ::testing::TestWithParam<PipelinedDifference> {
 protected:
  static constexpr std::string_view kHereText =
      "rank 0 all_gather_matmul (m 6, n 7, k 5, row, 1 B), fp32, pipelined_shift, get, 4 streams";

  static void expect_mismatch(Communicator& group, const Layer& layer) {
    LayerOfRank side(layer, group, nullptr);
    side.fill(1);
    const Status status = all_gather_matmul(group, side.call());
    EXPECT_EQ(status.code(), StatusCode::kMismatch) << status.to_string();
    const std::string text = told(group, GetParam().there_text);
    EXPECT_THAT(text, HasSubstr(std::string(kHereText)));
    EXPECT_THAT(text, HasSubstr(GetParam().there_text));
  }
};

TEST_P(PipelinedMismatch, IsFoundByBothRanksAndNamesBoth) {
  auto groups = groups_of(2);
  on_all_ranks(2, [&](int rank) {
    const Layer here = {.algorithm = "pipelined_shift"};
    expect_mismatch(groups[static_cast<std::size_t>(rank)], rank == 0 ? here : GetParam().there);
  });
}

INSTANTIATE_TEST_SUITE_P(
    Fields, PipelinedMismatch,
    ::testing::Values(
        PipelinedDifference{{.n = {8}, .algorithm = "pipelined_shift"},
                            "rank 1 all_gather_matmul (m 6, n 8, k 5, row, 1 B), fp32, "
                            "pipelined_shift, get, 4 streams"},
        PipelinedDifference{
            {.layout = MatrixLayout::kColumnMajor, .algorithm = "pipelined_shift"},
            "rank 1 all_gather_matmul (m 6, n 7, k 5, column, 1 B), fp32, pipelined_shift"},
        PipelinedDifference{
            {.dtype = DataType::kBfloat16, .algorithm = "pipelined_shift"},
            "rank 1 all_gather_matmul (m 6, n 7, k 5, row, 1 B), bf16, pipelined_shift"},
        PipelinedDifference{{.algorithm = "pipelined_shift", .pipeline = {.mover = "kernel"}},
                            "get by kernel, 4 streams"},
        PipelinedDifference{{.algorithm = "pipelined_shift", .pipeline = {.protocol = "put"}},
                            "1 B), fp32, pipelined_shift, put, 4 streams"},
        PipelinedDifference{{.algorithm = "pipelined_shift", .pipeline = {.streams = 3}},
                            "1 B), fp32, pipelined_shift, get, 3 streams"},
        PipelinedDifference{{.algorithm = "pipelined_tiles", .pipeline = {.tiles = 5}},
                            "1 B), fp32, pipelined_tiles, get, 5 tiles, 4 streams"},
        PipelinedDifference{{.algorithm = "fused"},
                            "1 B), fp32, fused, rotated order, 1 chunk of a shard"}));

// Of calls that all ranks have made before with m = 6 and m = 8: nothing is exchanged, unless
// `other` is new to rank 1.
void expect_ranks_told(std::string_view algorithm, std::size_t other) {
  auto groups = groups_of(3);
  on_all_ranks(3, [&](int rank) {
    Communicator& group = groups[static_cast<std::size_t>(rank)];
    const auto call = [&](std::size_t m) {
      LayerOfRank side({.m = m, .algorithm = algorithm}, group, nullptr);
      side.fill(1);
      return all_gather_matmul(group, side.call());
    };
    require_ok(call(6));
    require_ok(call(8));
    const Status status = call(rank == 1 ? other : 6);
    EXPECT_EQ(status.code(), StatusCode::kMismatch) << status.to_string();
    const std::string text = told(group, "rank 1 all_gather_matmul");
    EXPECT_THAT(text, HasSubstr(" all_gather_matmul (m 6, n 7, k 5, row, 1 B)"));
    EXPECT_THAT(text, HasSubstr(fmt::format("rank 1 all_gather_matmul (m {}, n 7, ", other)));
  });
}

TEST(PipelinedAllGatherMatmulHost, RanksThatRunDifferentKnownPipelinesAreTold) {
  for (const std::string_view algorithm : {"pipelined_ring", "fused"}) {
    for (const std::size_t other : {8, 10}) expect_ranks_told(algorithm, other);
  }
}

// Rank 1 calls so often, and then no more. What rank 0 and its group say in the end.
Status call_without_rank_1(int calls_of_rank_1, Communicator& group) {
  LayerOfRank side({.algorithm = "pipelined_ring"}, group, nullptr);
  Status status;
  for (int call = 0; call <= calls_of_rank_1 && status.is_ok(); ++call) {
    if (group.rank() == 1 && call == calls_of_rank_1) break;
    side.fill(call);
    AllGatherMatmul arguments = side.call();
    if (call == calls_of_rank_1) arguments.timeout = 50ms;
    status = all_gather_matmul(group, arguments);
  }
  return status;
}

TEST(PipelinedAllGatherMatmulHost, ATimeoutNamesTheRankThatDoesNotCome) {
  for (const int calls : {0, 2}) {
    auto groups = groups_of(2);
    on_all_ranks(2, [&](int rank) {
      Communicator& group = groups[static_cast<std::size_t>(rank)];
      const Status status = call_without_rank_1(calls, group);
      EXPECT_EQ(status.code(), rank == 0 ? StatusCode::kTimeout : StatusCode::kOk)
          << status.to_string();
      const std::string text = told(group, "rank 1");
      EXPECT_THAT(text, HasSubstr("rank 1"));
      EXPECT_EQ(group.status().code(), StatusCode::kTimeout) << text;
      if (calls > 0) {
        EXPECT_THAT(text, HasSubstr("rank 0 waited 50 ms for rank 1: "));
      }
    });
  }
}

// Before the first call, and after it. Nobody waits for a deadline.
TEST(PipelinedAllGatherMatmulHost, ARankThatLeavesEndsAWait) {
  for (const auto& [algorithm, calls] : {std::pair<std::string_view, int>{"pipelined_shift", 0},
                                         {"pipelined_shift", 1},
                                         {"fused", 1}}) {
    auto groups = groups_of(2);
    on_all_ranks(2, [&, &algorithm = algorithm, &calls = calls](int rank) {
      Communicator group = std::move(groups[static_cast<std::size_t>(rank)]);
      LayerOfRank side({.algorithm = algorithm}, group, nullptr);
      side.fill(1);
      for (int call = 0; call < calls; ++call) require_ok(all_gather_matmul(group, side.call()));
      if (rank == 1) return;
      const Status status = all_gather_matmul(group, side.call());
      EXPECT_EQ(status.code(), StatusCode::kPeerFailed) << status.to_string();
      EXPECT_THAT(status.message(), HasSubstr("rank 1"));
      if (calls == 0) return;
      EXPECT_THAT(status.message(), HasSubstr("rank 0 waits for rank 1, which left the group: "));
    });
  }
}

// A wait that is under way, too.
TEST(PipelinedAllGatherMatmulHost, AShorterTimeoutEndsAWait) {
  auto groups = groups_of(2);
  on_all_ranks(2, [&](int rank) {
    Communicator& group = groups[static_cast<std::size_t>(rank)];
    LayerOfRank side({.algorithm = "pipelined_ring"}, group, nullptr);
    side.fill(1);
    require_ok(all_gather_matmul(group, side.call()));
    if (rank == 1) return (void)told(group, "rank 1");
    require_ok(group.set_timeout(kPatience));
    std::jthread shorter([&group] {
      std::this_thread::sleep_for(50ms);
      require_ok(group.set_timeout(70ms));
    });
    const Status status = all_gather_matmul(group, side.call());
    EXPECT_EQ(status.code(), StatusCode::kTimeout);
    EXPECT_THAT(status.message(), HasSubstr("rank 0 waited 70 ms for rank 1: "));
  });
}

TEST(PipelinedAllGatherMatmulHost, AnAbortEndsAWait) {
  std::barrier<> both_have_called{2};
  auto groups = groups_of(2);
  on_all_ranks(2, [&](int rank) {
    Communicator& group = groups[static_cast<std::size_t>(rank)];
    LayerOfRank side({.algorithm = "pipelined_tiles"}, group, nullptr);
    side.fill(1);
    const Status first = all_gather_matmul(group, side.call());
    both_have_called.arrive_and_wait();
    require_ok(first);
    if (rank == 1) {
      group.abort("enough");
    } else {
      const Status status = all_gather_matmul(group, side.call());
      EXPECT_EQ(status.code(), StatusCode::kAborted) << status.to_string();
    }
  });
}

}  // namespace
}  // namespace tutti::test
