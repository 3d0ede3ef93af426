// What `tutti status` shows of the pipelines of all_gather_matmul: on the host, and on GPUs that do
// not exist.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "group/communicator_impl.hpp"
#include "group/recorder/find_pages.hpp"
#include "group/recorder/snapshot.hpp"
#include "support/check.hpp"
#include "support/patience.hpp"
#include "support/ranks.hpp"
#include "tutti/tutti.hpp"
#include "unit/api/groups.hpp"
#include "unit/api/layer_of_rank.hpp"
#include "unit/api/pipelined_gpus.hpp"

namespace tutti::test {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Snapshot page_of(Communicator& group) {
  return take(parse_page(take(read_page(group.impl().recorder().descriptor()))));
}

template <class Condition>
void await_that(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    ASSERT_LT(std::chrono::steady_clock::now(), end);
    std::this_thread::sleep_for(1ms);
  }
}

class PipelinedRecorder : public ::testing::TestWithParam<const char*> {};

TEST_P(PipelinedRecorder, OnTheHostAWaitNamesTheRank) {
  const std::string algorithm = GetParam();
  auto groups = groups_of(2);
  on_all_ranks(2, [&](int rank) {
    Communicator& group = groups[static_cast<std::size_t>(rank)];
    LayerOfRank side({.algorithm = algorithm}, group, nullptr);
    side.fill(1);
    require_ok(all_gather_matmul(group, side.call()));
    const Snapshot before = page_of(group);
    EXPECT_EQ(to_string(before.operations.back()),
              "all_gather_matmul/" + algorithm + " #1 (30 x fp32)");
    EXPECT_EQ(before.operations.back().state, OperationState::kDone);
    EXPECT_TRUE(before.waits_for.empty());
    if (rank == 1) {
      // Rank 0 may still be in its first call, which waits and goes on.
      Snapshot other;
      await_that([&] {
        other = page_of(groups[0]);
        return other.operations.size() == 2 && !other.waits_for.empty();
      });
      EXPECT_EQ(other.operations.back().state, OperationState::kRunning);
      EXPECT_THAT(other.waits_for, ElementsAre(1));
      group.abort("enough");
      return;
    }
    EXPECT_EQ(all_gather_matmul(group, side.call()).code(), StatusCode::kAborted);
    const Snapshot failed = page_of(group);
    ASSERT_EQ(failed.operations.size(), 2u);
    EXPECT_EQ(failed.operations.back().state, OperationState::kFailed);
    EXPECT_EQ(failed.operations.back().signature, failed.operations.front().signature);
    EXPECT_THAT(failed.waits_for, ElementsAre(1));
  });
}

INSTANTIATE_TEST_SUITE_P(Algorithms, PipelinedRecorder,
                         ::testing::Values("pipelined_ring", "fused"));

TEST(PipelinedRecorderOnGpus, ACallIsEnqueuedThenDone) {
  PipelinedGpus ranks(2);
  ranks.prepare({});
  const auto state = [&](int rank) {
    const Snapshot page = page_of(ranks.gpus.groups[PipelinedGpus::at(rank)]);
    return page.operations.back().state;
  };
  await_that([&] { return state(0) == OperationState::kDone; });
  require_ok(ranks.run(0, ranks.calls(0, {}).call(1, ranks.streams[0])));
  EXPECT_EQ(state(0), OperationState::kEnqueued);
  EXPECT_EQ(to_string(page_of(ranks.gpus.groups[0]).operations.back()),
            "all_gather_matmul/pipelined_shift #2 (104 x bf16)");
  ranks.hurry();
  EXPECT_EQ(ranks.end_of(0).code(), StatusCode::kTimeout);
  const Snapshot page = page_of(ranks.gpus.groups[0]);
  ASSERT_TRUE(page.failure.has_value());
  EXPECT_THAT(page.failure->text, HasSubstr("pipeline #2 of all_gather_matmul"));
  EXPECT_THAT(page.waits_for, ElementsAre(1));
}

}  // namespace
}  // namespace tutti::test
