// How many multiprocessors a call may take, and what that leaves of each class of row.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "algorithms/moving.hpp"
#include "base/units.hpp"
#include "planning/choose.hpp"
#include "planning/filter.hpp"
#include "unit/planning/entries.hpp"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Request asking(Collective collective, std::optional<int> budget, std::size_t bytes = 8 * MiB) {
  Request request;
  request.collective = collective;
  request.count = bytes;
  request.dtype = reduces(collective) ? DataType::kBfloat16 : DataType::kUint8;
  if (reduces(collective)) request.count /= 2;
  if (collective == Collective::kAllReduceResidualRmsNorm) request.hidden = 8192;
  request.packet_bytes = 32 * MiB;
  request.ring_bytes = 8 * MiB;
  request.sm_budget = budget;
  return request;
}

std::string reason(std::string_view id, std::optional<int> budget,
                   const Topology& topology = eight_h200()) {
  const auto collective = parse_collective(id.substr(0, id.find('/')));
  const auto row = find_algorithm(*collective, id);
  return row.is_ok() ? why_not(**row, asking(*collective, budget), topology) : "no such row";
}

Result<Plan> budgeted(const Request& request, const TuningTable& table = TuningTable::empty()) {
  return choose(request, eight_h200(), table);
}

constexpr Collective kMoving[] = {Collective::kAllGather, Collective::kAllToAll,
                                  Collective::kBroadcast, Collective::kGather,
                                  Collective::kScatter};

TEST(Budget, OfNoneLeavesCopyEnginesThatMoveAndNothingElse) {
  EXPECT_THAT(reason("all_gather/copy_engine", 0), IsEmpty());
  EXPECT_THAT(reason("barrier/flags", 0), IsEmpty());
  EXPECT_THAT(reason("all_gather/push", 0), HasSubstr("moves bytes on SMs"));
  EXPECT_THAT(reason("all_gather/one_shot_push", 0), HasSubstr("moves bytes on SMs"));
  EXPECT_THAT(reason("all_reduce/two_shot_copy_engine", 0), HasSubstr("reduces on SMs between"));
  EXPECT_THAT(reason("reduce_scatter/copy_engine", 0), HasSubstr("reduces on SMs between"));
  EXPECT_THAT(reason("all_gather/nccl", 0), HasSubstr("as many SMs as NCCL decides"));
  EXPECT_THAT(reason("all_gather/nccl_window", 0), HasSubstr("as many SMs as NCCL decides"));
  EXPECT_THAT(reason("all_gather/nccl_copy_engine", 0), IsEmpty());
}

// Ranks that move bytes by copy engines alone meet without an SM, too; not in a capture, which
// would repeat the values, and only where a call or the setting asks for it.
TEST(Budget, OfNoneMeetsByStreamMemoryOperations) {
  const auto meets_by_streams = [](const Request& request, std::string_view algorithm = {}) {
    Request asked = request;
    asked.algorithm = algorithm;
    return budgeted(asked)->stream_barrier;
  };
  Request request = asking(Collective::kAllGather, 0);
  EXPECT_TRUE(meets_by_streams(request));
  EXPECT_THAT(to_string(*budgeted(request)), HasSubstr("meet by stream memory operations"));
  EXPECT_FALSE(meets_by_streams(request, "copy_engine_multicast")) << "it stores into peers";
  request.capturing = true;
  EXPECT_FALSE(meets_by_streams(request));
  request.capturing = false;
  request.has_stream_barrier = false;
  EXPECT_FALSE(meets_by_streams(request)) << "a rank cannot";
  request = asking(Collective::kAllGather, std::nullopt);
  EXPECT_FALSE(meets_by_streams(request, "copy_engine"));
  for (const std::int64_t limit : {std::int64_t{kSizeAlways}, std::int64_t{8 * MiB}}) {
    request.stream_barrier_bytes = limit;
    EXPECT_TRUE(meets_by_streams(request, "copy_engine")) << limit;
    EXPECT_FALSE(meets_by_streams(request, "push")) << "it moves bytes by kernels";
  }
  request.stream_barrier_bytes = 8 * MiB - 1;
  EXPECT_FALSE(meets_by_streams(request, "copy_engine"));
  request.sm_budget = 0;
  request.stream_barrier_bytes = kSizeNever;
  EXPECT_FALSE(meets_by_streams(request));
  request = asking(Collective::kReduceScatter, std::nullopt);
  request.stream_barrier_bytes = kSizeAlways;
  EXPECT_FALSE(meets_by_streams(request, "copy_engine")) << "its kernels reduce";
}

// What the property says is what the rows are: programs of copies, of collectives that reduce
// nothing, with the one kernel; and barriers, which have no bytes.
TEST(Budget, OnlyRowsThatReduceNothingOnlyMeet) {
  int meeting = 0;
  for (const Algorithm& row : catalogue()) {
    if (row.network != nullptr) continue;  // no kernel
    const bool moves = row.program != nullptr && !reduces(row.collective);
    EXPECT_EQ(only_meets(row), moves || row.collective == Collective::kBarrier) << row.id;
    meeting += only_meets(row) ? 1 : 0;
  }
  EXPECT_EQ(meeting, 8);
}

// The model alone never takes them: that nothing else is left is what asks for them.
TEST(Budget, OfNoneIsEnoughToTakeCopyEngines) {
  for (const Collective collective : kMoving) {
    const std::string id = std::string(to_string(collective)) + "/copy_engine";
    const auto plan = budgeted(asking(collective, 0));
    ASSERT_TRUE(plan.is_ok()) << plan.status().to_string();
    EXPECT_EQ(plan->algorithm, id);
    EXPECT_EQ(plan->source, PlanSource::kModel);
    EXPECT_EQ(plan->blocks, 1);
    EXPECT_NE(budgeted(asking(collective, std::nullopt))->algorithm, id);
    EXPECT_NE(budgeted(asking(collective, 1))->algorithm, id);
  }
}

TEST(Budget, OfNoneLeavesReductionsNothingAndSaysWhyForEachRow) {
  for (const Collective collective : {Collective::kAllReduce, Collective::kReduceScatter,
                                      Collective::kReduce, Collective::kAllReduceResidualRmsNorm}) {
    const auto plan = budgeted(asking(collective, 0));
    ASSERT_EQ(plan.status().code(), StatusCode::kUnsupported) << to_string(collective);
    EXPECT_THAT(plan.status().message(), HasSubstr("with a budget of 0 SMs"));
    for (const Algorithm& row : rows_of(collective)) {
      const std::string why = reason(row.id, 0);
      EXPECT_THAT(why, Not(IsEmpty())) << row.id;
      EXPECT_THAT(plan.status().message(), HasSubstr(": " + why)) << row.id;
    }
  }
}

// With few multiprocessors a row that is made for them takes the place of the one that is not: of a
// grid that the budget cuts, on GPUs that can run it, and not where a call says what it wants.
TEST(Budget, OfFewTakesWhatIsMadeForFew) {
  const auto on = [](int ranks) {
    Topology topology = eight_h200();
    topology.ranks = ranks;
    return topology;
  };
  const auto asked = [](std::optional<int> budget, std::size_t bytes) {
    Request request = asking(Collective::kReduceScatter, budget, bytes);
    request.packet_bytes = 0;
    return request;
  };
  const auto chosen = [](const Request& request, const Topology& topology) {
    return choose(request, topology, TuningTable::empty())->algorithm;
  };
  const std::string pull = "reduce_scatter/pull", few = "reduce_scatter/pull_tma";
  ASSERT_EQ(chosen(asked(std::nullopt, 64 * MiB), on(2)), pull);
  EXPECT_EQ(chosen(asked(8, 64 * MiB), on(2)), few);
  EXPECT_EQ(chosen(asked(32, 64 * MiB), on(2)), few);
  EXPECT_EQ(chosen(asked(33, 64 * MiB), on(2)), pull);
  EXPECT_EQ(chosen(asked(4, 64 * MiB), on(8)), few);
  EXPECT_EQ(budgeted(asked(4, 64 * MiB))->blocks, 4);
  EXPECT_EQ(chosen(asked(5, 64 * MiB), on(8)), pull) << "whose threads have 7 parts under way";
  EXPECT_EQ(chosen(asked(16, 64 * KiB), on(2)), pull) << "which needs no more blocks";
  EXPECT_THAT(explain(asked(8, 64 * MiB), on(2), TuningTable::empty()),
              AllOf(HasSubstr("made for few SMs, it replaces pull"),
                    HasSubstr("pull_tma replaces it if SMs are few")));
  Request named = asked(8, 64 * MiB);
  named.algorithm = "pull";
  EXPECT_EQ(chosen(named, on(2)), pull);
  Topology ampere = on(2);
  ampere.compute = 80;
  EXPECT_EQ(chosen(asked(8, 64 * MiB), ampere), pull);
}

TEST(Budget, FewBlocksAreBoundToOneRankEach) {
  Topology two = eight_h200();
  two.ranks = 2;
  int bound = 0;
  for (const Algorithm& row : catalogue()) {
    if (!is_bound_to_peers(row) || reduces(row.collective)) continue;
    ++bound;
    const std::string push = std::string(to_string(row.collective)) + "/push";
    const auto chosen = [&](std::optional<int> budget) {
      Request request = asking(row.collective, budget, 64 * MiB);
      request.packet_bytes = 0;
      return choose(request, two, TuningTable::empty())->algorithm;
    };
    EXPECT_EQ(chosen(std::nullopt), push);
    EXPECT_EQ(chosen(32), row.id);
    EXPECT_EQ(chosen(33), push);
  }
  EXPECT_EQ(bound, 2);  // all_gather's and all_to_all's
}

TEST(Budget, CapsGridsWhoeverChoseThem) {
  const Request free = asking(Collective::kAllReduce, std::nullopt);
  ASSERT_GT(budgeted(free)->blocks, 16);
  for (const int budget : {1, 7, 16}) {
    Request request = asking(Collective::kAllReduce, budget);
    EXPECT_EQ(budgeted(request)->blocks, budget);  // the model
    request.algorithm = "two_shot";
    EXPECT_EQ(budgeted(request)->blocks, budget);  // the call
    request.algorithm = {};
    request.tune = "all_reduce:@two_shot_push";
    EXPECT_EQ(budgeted(request)->blocks, budget);  // TUTTI_TUNE
  }
  EXPECT_EQ(*budgeted(asking(Collective::kAllReduce, 1000)), *budgeted(free));
}

// A table knows grids that were the fastest, without any limit.
TEST(Budget, CapsTheGridsOfTables) {
  TuningEntry entry = entry_of(0, 16 * MiB, "all_reduce/two_shot_push");
  entry.blocks = 96;
  const TuningTable table =
      *TuningTable::from_sources({{PlanSource::kShipped, "shipped", {entry}}});
  EXPECT_EQ(budgeted(asking(Collective::kAllReduce, std::nullopt), table)->blocks, 96);
  const auto plan = budgeted(asking(Collective::kAllReduce, 24), table);
  EXPECT_EQ(plan->algorithm, "all_reduce/two_shot_push");
  EXPECT_EQ(plan->source, PlanSource::kShipped);
  EXPECT_EQ(plan->blocks, 24);
}

TEST(Budget, ATablesRowThatIsOutFallsThrough) {
  TuningEntry entry = entry_of(0, 16 * MiB, "all_gather/push");
  entry.collective = Collective::kAllGather;
  const TuningTable table =
      *TuningTable::from_sources({{PlanSource::kShipped, "shipped", {entry}}});
  EXPECT_EQ(budgeted(asking(Collective::kAllGather, std::nullopt), table)->algorithm,
            "all_gather/push");
  EXPECT_EQ(budgeted(asking(Collective::kAllGather, 0), table)->algorithm,
            "all_gather/copy_engine");
}

TEST(Budget, LeavesOutGridsThatNobodyCanCap) {
  EXPECT_THAT(reason("all_reduce/nccl", 64), HasSubstr("NCCL decides, and the budget is 64"));
  EXPECT_THAT(reason("all_reduce_residual_rms_norm/two_shot", 64),
              HasSubstr("has a second kernel"));
  const auto tokens = budgeted(asking(Collective::kAllReduceResidualRmsNorm, 64, 1 * MiB));
  ASSERT_TRUE(tokens.is_ok()) << tokens.status().to_string();
  EXPECT_EQ(tokens->algorithm, "all_reduce_residual_rms_norm/one_shot_push");
  EXPECT_EQ(tokens->blocks, 64);
  for (const std::string_view id : {"all_reduce/nccl", "all_reduce_residual_rms_norm/two_shot"}) {
    EXPECT_THAT(reason(id, std::nullopt), IsEmpty()) << id;
  }
}

TEST(Budget, ARowThatIsNamedDoesNotWinOverIt) {
  Request request = asking(Collective::kAllGather, 0);
  request.algorithm = "push";
  EXPECT_EQ(budgeted(request).status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(budgeted(request).status().message(),
              HasSubstr("all_gather/push was requested, but cannot run: moves bytes on SMs"));
  request.algorithm = "copy_engine";
  EXPECT_TRUE(budgeted(request).is_ok());
}

TEST(Budget, BelowZeroIsAnError) {
  const auto plan = budgeted(asking(Collective::kAllGather, -1));
  EXPECT_EQ(plan.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(plan.status().message(), HasSubstr("sm_budget is -1"));
}

TEST(Budget, IsNotLookedAtOnTheHost) {
  Topology host = eight_h200();
  host.backend = Backend::kHost;
  for (const Collective collective : {Collective::kAllReduce, Collective::kAllGather}) {
    const auto free = choose(asking(collective, std::nullopt), host, TuningTable::empty());
    EXPECT_EQ(*choose(asking(collective, 0), host, TuningTable::empty()), *free);
    EXPECT_EQ(*choose(asking(collective, 3), host, TuningTable::empty()), *free);
  }
}

TEST(Budget, IsExplained) {
  const std::string text =
      explain(asking(Collective::kAllGather, 0), eight_h200(), TuningTable::empty());
  EXPECT_THAT(text, AllOf(HasSubstr("at most 0 SMs"), HasSubstr("plan: all_gather/copy_engine"),
                          HasSubstr("moves bytes on SMs, and the budget is 0")));
}

}  // namespace
}  // namespace tutti
