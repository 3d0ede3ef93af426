// What all_gather_matmul/fused does on the host that pipelines do not: chunks, and waits for them
// and for ranks without rows. pipelined_all_gather_matmul_test.cpp has what is the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <chrono>
#include <string>
#include <thread>

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

// One call of a rank, with the results that it should have.
Status call_fused(Communicator& group, Layer layer, int salt, std::chrono::milliseconds timeout) {
  layer.algorithm = "fused";
  LayerOfRank side(layer, group, nullptr);
  side.fill(salt);
  AllGatherMatmul call = side.call();
  call.timeout = timeout;
  const Status status = all_gather_matmul(group, call);
  if (status.is_ok()) side.expect_right(fmt::format("{}, call {}", layer.text(), salt));
  return status;
}

// Shards of three chunks, where tiles have rows of two shards, and the last shard is shorter. Ranks
// take turns in being late.
TEST(FusedOnHost, AShardMayBeOfSeveralChunks) {
  auto groups = groups_of(3);
  on_all_ranks(3, [&](int rank) {
    Communicator& group = groups[static_cast<std::size_t>(rank)];
    const Layer layer = {.m = 3100, .n = {4}, .gathered = true, .algorithm = "fused"};
    for (int salt = 0; salt < 4; ++salt) {
      if (salt % 3 == rank) std::this_thread::sleep_for(2ms);
      require_ok(call_fused(group, layer, salt, 0ms));
    }
    LayerOfRank side(layer, group, nullptr);
    EXPECT_EQ(take(tutti::plan(group, side.call())).config,
              "fused, rotated order, 3 chunks of a shard, host_matmul");
  });
}

// Rank 0 calls once more than rank 1.
struct MissingRank {
  Layer layer;
  std::string said;
};

class FusedWithoutRank1 : public ::testing::TestWithParam<MissingRank> {};

TEST_P(FusedWithoutRank1, ATimeoutNamesRankAndChunkAndEpoch) {
  std::barrier<> both_have_called{2};
  auto groups = groups_of(2);
  on_all_ranks(2, [&](int rank) {
    const auto& [layer, said] = GetParam();
    Communicator& group = groups[static_cast<std::size_t>(rank)];
    const Status first = call_fused(group, layer, 0, 0ms);
    both_have_called.arrive_and_wait();
    require_ok(first);
    if (rank == 0) {
      const Status status = call_fused(group, layer, 1, 50ms);
      EXPECT_EQ(status.code(), StatusCode::kTimeout) << status.to_string();
      EXPECT_THAT(status.message(), HasSubstr("rank 0 waited 50 ms for rank 1: " + said));
    }
    EXPECT_THAT(told(group, "rank 1"), HasSubstr(said));
    EXPECT_EQ(group.status().code(), StatusCode::kTimeout);
  });
}

INSTANTIATE_TEST_SUITE_P(
    Words, FusedWithoutRank1,
    ::testing::Values(MissingRank{{}, "chunk 0 of shard 1 is at epoch 1, not 2"},
                      // Rank 1 has no rows.
                      MissingRank{{.m = 1}, "chunk 0 of shard 1 is at epoch 1, not 2"}));

TEST(FusedOnHost, AnAbortEndsAWait) {
  std::barrier<> both_have_called{2};
  auto groups = groups_of(2);
  on_all_ranks(2, [&](int rank) {
    Communicator& group = groups[static_cast<std::size_t>(rank)];
    const Status first = call_fused(group, {}, 0, 0ms);
    both_have_called.arrive_and_wait();
    require_ok(first);
    if (rank == 1) return group.abort("enough");
    const Status status = call_fused(group, {}, 1, 0ms);
    EXPECT_EQ(status.code(), StatusCode::kAborted) << status.to_string();
  });
}

}  // namespace
}  // namespace tutti::test
