#include "planning/choose.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "base/units.hpp"
#include "planning/access.hpp"
#include "planning/reasons.hpp"
#include "planning/selection.hpp"
#include "unit/planning/entries.hpp"
#include "unit/planning/rows.hpp"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Plan plan_of(const Request& request, const TuningTable& table = TuningTable::empty(),
             const Topology& topology = eight_h200()) {
  const auto plan = choose(request, topology, table, kTestRows);
  EXPECT_TRUE(plan.is_ok()) << plan.status().to_string();
  return plan.is_ok() ? *plan : Plan{};
}

// Every source names another row for the same size.
class Precedence : public testing::Test {
 protected:
  const TuningSource user_{PlanSource::kUserFile, "user", {entry_of(0, MiB, "all_reduce/ring")}};
  const TuningSource cache_{PlanSource::kUserCache, "cache", {entry_of(0, MiB, "all_reduce/lean")}};
  const TuningSource shipped_{
      PlanSource::kShipped, "shipped", {entry_of(0, MiB, "all_reduce/nccl")}};
  const TuningTable all_ = table_of({user_, cache_, shipped_});
  Request request_ = [] {
    Request request;
    request.count = 1024;
    request.dtype = DataType::kBfloat16;
    return request;
  }();
};

TEST_F(Precedence, TheCallBeforeTheOverride) {
  request_.algorithm = "lean";
  request_.tune = "all_reduce:@nccl";
  const Plan plan = plan_of(request_, all_);
  EXPECT_EQ(plan.algorithm, "all_reduce/lean");
  EXPECT_EQ(plan.source, PlanSource::kCall);
}

TEST_F(Precedence, TheOverrideBeforeTheTables) {
  request_.tune = "all_reduce:@nccl";
  const Plan plan = plan_of(request_, all_);
  EXPECT_EQ(plan.algorithm, "all_reduce/nccl");
  EXPECT_EQ(plan.source, PlanSource::kOverride);
}

TEST_F(Precedence, AnOverrideForOtherSizesIsPassedOver) {
  request_.tune = "all_reduce:1M-inf:@nccl";
  EXPECT_EQ(plan_of(request_, all_).source, PlanSource::kUserFile);
}

TEST_F(Precedence, TheTablesInTheirOrder) {
  EXPECT_EQ(plan_of(request_, all_).algorithm, "all_reduce/ring");
  EXPECT_EQ(plan_of(request_, all_).source, PlanSource::kUserFile);
  EXPECT_EQ(plan_of(request_, table_of({cache_, shipped_})).source, PlanSource::kUserCache);
  EXPECT_EQ(plan_of(request_, table_of({shipped_})).source, PlanSource::kShipped);
}

TEST_F(Precedence, TheModelLast) {
  EXPECT_EQ(plan_of(request_).source, PlanSource::kModel);
  Request large = request_;
  large.count = MiB;  // twice that in bytes, beyond every range
  EXPECT_EQ(plan_of(large, all_).source, PlanSource::kModel);
}

TEST_F(Precedence, ATablesRowThatCannotRunFallsThrough) {
  request_.dtype = DataType::kFloat32;  // the ring does not take it
  EXPECT_EQ(plan_of(request_, all_).source, PlanSource::kUserCache);
  Topology topology = eight_h200();
  topology.within_nodes = Reach::kNone;
  EXPECT_EQ(plan_of(request_, all_, topology).source, PlanSource::kShipped);
  request_.deterministic = true;
  EXPECT_EQ(plan_of(request_, table_of({shipped_})).source, PlanSource::kModel);
}

TEST_F(Precedence, ATablesRowOfAnotherBuildFallsThrough) {
  const TuningSource old{PlanSource::kUserCache, "old", {entry_of(0, MiB, "all_reduce/magic")}};
  EXPECT_EQ(plan_of(request_, table_of({old, shipped_})).source, PlanSource::kShipped);
}

TEST(Choose, ATablesThresholdIsInclusive) {
  const TuningTable table = table_of(
      {{PlanSource::kShipped,
        "s",
        {entry_of(0, 65536, "all_reduce/quick"), entry_of(65537, MiB, "all_reduce/lean")}}});
  EXPECT_EQ(plan_of(bytes_of(65535), table).algorithm, "all_reduce/quick");
  EXPECT_EQ(plan_of(bytes_of(65536), table).algorithm, "all_reduce/quick");
  EXPECT_EQ(plan_of(bytes_of(65537), table).algorithm, "all_reduce/lean");
  EXPECT_EQ(plan_of(bytes_of(MiB), table).source, PlanSource::kShipped);
  EXPECT_EQ(plan_of(bytes_of(MiB + 1), table).source, PlanSource::kModel);
}

TEST(Choose, AnOverridesThresholdIsInclusiveAndTheFirstCounts) {
  const auto algorithm = [](std::size_t bytes) {
    Request request = bytes_of(bytes);
    request.tune = "all_reduce:1K-64K:@nccl;all_reduce:64K-inf:@lean";
    return plan_of(request).algorithm + "/" + std::string(to_string(plan_of(request).source));
  };
  EXPECT_EQ(algorithm(1023), "all_reduce/quick/model");
  EXPECT_EQ(algorithm(1024), "all_reduce/nccl/override");
  EXPECT_EQ(algorithm(65536), "all_reduce/nccl/override");
  EXPECT_EQ(algorithm(65537), "all_reduce/lean/override");
  EXPECT_EQ(algorithm(std::size_t{1} << 50), "all_reduce/lean/override");
}

TEST(Choose, BytesBeyond32BitsKeepTheirMeaning) {
  Request request;
  request.count = (std::size_t{1} << 31) + 1;
  EXPECT_EQ(request.bytes(), (std::size_t{1} << 33) + 4);
  EXPECT_EQ(plan_of(request).algorithm, "all_reduce/lean");
}

TEST(Choose, TheModelTakesFewStepsForSmallAndFewBytesForLarge) {
  EXPECT_EQ(plan_of(bytes_of(0)).algorithm, "all_reduce/quick");
  EXPECT_EQ(plan_of(bytes_of(1024)).algorithm, "all_reduce/quick");
  EXPECT_EQ(plan_of(bytes_of(64 * MiB)).algorithm, "all_reduce/lean");
}

TEST(Choose, GeometryIsTheRowsUnlessTheTableSaysBetter) {
  const Plan model = plan_of(bytes_of(4096));
  EXPECT_EQ(model.blocks, 5);
  EXPECT_EQ(model.threads, 256);
  TuningEntry entry = entry_of(0, MiB, "all_reduce/quick");
  entry.chunk_bytes = 4096;
  const auto with = [&](int blocks, int threads) {
    entry.blocks = blocks;
    entry.threads = threads;
    return plan_of(bytes_of(4096), table_of({{PlanSource::kShipped, "s", {entry}}}));
  };
  EXPECT_EQ(with(0, 0).blocks, 5);
  EXPECT_EQ(with(0, 0).threads, 256);
  EXPECT_EQ(with(0, 0).chunk_bytes, 4096u);
  EXPECT_EQ(with(64, 0).blocks, 64);
  EXPECT_EQ(with(64, 0).threads, 256);
  EXPECT_EQ(with(64, 512).threads, 512);
}

TEST(Choose, AForcedRowThatCannotRunIsAnErrorWithItsReason) {
  Request request = bytes_of(64);
  request.algorithm = "switch";
  Topology apart = eight_h200();
  apart.within_nodes = Reach::kNone;
  const auto called = choose(request, apart, TuningTable::empty(), kTestRows);
  ASSERT_FALSE(called.is_ok());
  EXPECT_EQ(called.status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(called.status().message(),
              AllOf(HasSubstr("all_reduce/switch was requested"), HasSubstr("peer access")));
  request.algorithm = {};
  request.tune = "all_reduce:@ring";
  const auto tuned = choose(request, eight_h200(), TuningTable::empty(), kTestRows);
  ASSERT_FALSE(tuned.is_ok());
  EXPECT_EQ(tuned.status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(tuned.status().message(), AllOf(HasSubstr("TUTTI_TUNE"), HasSubstr("sum of uint8")));
}

// Only where it is named, and then it says so.
TEST(Choose, WithoutMulticastItsRowsAreEmulated) {
  Topology topology = eight_h200();
  const TuningTable table =
      table_of({{PlanSource::kShipped, "shipped", {entry_of(0, MiB, "all_reduce/switch")}}});
  Request request = bytes_of(64);
  EXPECT_NE(choose(request, topology, table, kTestRows)->algorithm, "all_reduce/switch");
  EXPECT_NE(choose(request, topology, TuningTable::empty(), kTestRows)->algorithm,
            "all_reduce/switch");
  for (const bool by_call : {false, true}) {
    request.algorithm = by_call ? "switch" : "";
    request.tune = by_call ? "" : "all_reduce:@switch";
    const auto named = choose(request, topology, table, kTestRows);
    ASSERT_TRUE(named.is_ok()) << named.status().to_string();
    EXPECT_EQ(named->algorithm, "all_reduce/switch");
    EXPECT_TRUE(named->emulated);
    EXPECT_THAT(to_string(*named), HasSubstr("emulated"));
  }
  topology.multicast = true;
  const auto real = choose(request, topology, table, kTestRows);
  EXPECT_FALSE(real->emulated);
  EXPECT_THAT(to_string(*real), testing::Not(HasSubstr("emulated")));
  request.algorithm = {};
  EXPECT_EQ(choose(request, topology, table, kTestRows)->algorithm, "all_reduce/switch");
}

TEST(Choose, AnUnknownNameListsTheKnownOnes) {
  Request request = bytes_of(64);
  request.algorithm = "qwick";
  const auto called = choose(request, eight_h200(), TuningTable::empty(), kTestRows);
  ASSERT_FALSE(called.is_ok());
  EXPECT_EQ(called.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(called.status().message(), HasSubstr("quick, lean, ring, switch, nccl"));
  request.algorithm = {};
  request.tune = "all_reduce:@qwick";
  const auto tuned = choose(request, eight_h200(), TuningTable::empty(), kTestRows);
  EXPECT_EQ(tuned.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(tuned.status().message(), HasSubstr("TUTTI_TUNE"));
}

TEST(Choose, NoPeerAccessLeavesNccl) {
  Topology topology = eight_h200();
  topology.within_nodes = Reach::kNone;
  EXPECT_EQ(plan_of(bytes_of(64), TuningTable::empty(), topology).algorithm, "all_reduce/nccl");
}

TEST(Choose, NeitherPeerAccessNorNcclNamesBoth) {
  Topology topology = eight_h200();
  topology.within_nodes = Reach::kNone;
  topology.nccl = false;
  const auto plan = choose(bytes_of(64), topology, TuningTable::empty(), kTestRows);
  ASSERT_FALSE(plan.is_ok());
  EXPECT_EQ(plan.status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(plan.status().message(),
              AllOf(HasSubstr("peer access between all GPUs, or NCCL"),
                    HasSubstr("; quick, lean and 2 more: needs"), HasSubstr("; nccl: needs NCCL")));
}

TEST(Choose, DeterministicWithNothingLeftSaysWhatWasLeftOut) {
  Topology topology = eight_h200();
  topology.within_nodes = Reach::kNone;
  Request request = bytes_of(64);
  request.deterministic = true;
  const auto plan = choose(request, topology, TuningTable::empty(), kTestRows);
  ASSERT_FALSE(plan.is_ok());
  EXPECT_EQ(plan.status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(plan.status().message(), AllOf(HasSubstr("quick, lean and 2 more: needs peer access"),
                                             HasSubstr("nccl: reduces in the order"),
                                             Not(HasSubstr("or NCCL, and there is neither"))));
}

TEST(Choose, DisabledTakesNcclOrSaysSo) {
  Request request = bytes_of(64);
  request.only_nccl = true;
  EXPECT_EQ(plan_of(request).algorithm, "all_reduce/nccl");
  Topology topology = eight_h200();
  topology.nccl = false;
  const auto plan = choose(request, topology, TuningTable::empty(), kTestRows);
  EXPECT_THAT(plan.status().message(), HasSubstr("TUTTI_DISABLE=1"));
}

TEST(Choose, OneRankAlone) {
  Topology topology = eight_h200();
  topology.ranks = 1;
  topology.within_nodes = Reach::kNone;
  topology.nccl = false;
  EXPECT_EQ(plan_of(bytes_of(64), TuningTable::empty(), topology).algorithm, "all_reduce/quick");
}

// ---- Buffers that peers do not reach

// 64 passes, if it goes through staging.
Request staged_in_a_graph() {
  Request request = bytes_of(16 * MiB);
  request.set_plain();
  request.capturing = true;
  request.staging_bytes = 256 * KiB;
  return request;
}

TuningTable lean_up_to(std::size_t bytes) {
  return table_of({{PlanSource::kShipped, "shipped", {entry_of(0, bytes, "all_reduce/lean")}}});
}

TEST(Staged, ATablesRowGivesWayToOneThatDoesNotStage) {
  const TuningTable table = lean_up_to(64 * MiB);
  Request request = staged_in_a_graph();
  const Plan plan = plan_of(request, table);
  EXPECT_EQ(plan.algorithm, "all_reduce/nccl");
  EXPECT_EQ(plan.source, PlanSource::kModel);
  request.input_reach = request.output_reach = BufferReach::kSwitch;
  EXPECT_EQ(plan_of(request, table).algorithm, "all_reduce/lean");
  EXPECT_EQ(plan_of(request, table).source, PlanSource::kShipped);
}

TEST(Staged, ATablesRowStaysWhereStagingCostsLittle) {
  Request request = staged_in_a_graph();
  request.count = 64 * KiB;  // one pass
  EXPECT_EQ(plan_of(request, lean_up_to(64 * MiB)).source, PlanSource::kShipped);
  request.count = 0;
  EXPECT_EQ(plan_of(request, lean_up_to(64 * MiB)).source, PlanSource::kShipped);
}

// Rows that all stage pay alike: no reason to leave the table for the model.
TEST(Staged, ATablesRowStaysWhereAllOthersStageToo) {
  Topology topology = eight_h200();
  topology.nccl = false;
  const Plan plan = plan_of(staged_in_a_graph(), lean_up_to(64 * MiB), topology);
  EXPECT_EQ(plan.algorithm, "all_reduce/lean");
  EXPECT_EQ(plan.source, PlanSource::kShipped);
}

TEST(Staged, WithoutATableTheModelCountsThePasses) {
  Request request = staged_in_a_graph();
  EXPECT_EQ(plan_of(request).algorithm, "all_reduce/nccl");
  request.input_reach = request.output_reach = BufferReach::kSwitch;
  EXPECT_EQ(plan_of(request).algorithm, "all_reduce/lean");
}

TEST(Staged, LargerStagingMakesFewerPasses) {
  Request request = staged_in_a_graph();
  request.count = 2 * MiB;
  EXPECT_EQ(plan_of(request, lean_up_to(64 * MiB)).algorithm, "all_reduce/nccl");
  request.capturing = false;
  request.staging_bytes = 16 * MiB;
  EXPECT_EQ(plan_of(request, lean_up_to(64 * MiB)).algorithm, "all_reduce/lean");
}

TEST(Staged, InsideACaptureNcclIsNoAlternativeUntilItsCommunicatorIsThere) {
  Request request = staged_in_a_graph();
  request.nccl_ready = false;
  EXPECT_EQ(plan_of(request, lean_up_to(64 * MiB)).algorithm, "all_reduce/lean");
  request.algorithm = "nccl";
  const auto forced = choose(request, eight_h200(), TuningTable::empty(), kTestRows);
  EXPECT_EQ(forced.status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(forced.status().message(), HasSubstr("prepare_nccl()"));
}

TEST(Staged, WhatIsForcedIsTaken) {
  Request request = staged_in_a_graph();
  request.tune = "all_reduce:@lean";
  EXPECT_EQ(plan_of(request, lean_up_to(64 * MiB)).source, PlanSource::kOverride);
}

// A row that stages its input only in place is compared as what it is then.
TEST(Staged, InPlaceCountsWhereTheRowStagesIt) {
  std::vector<Algorithm> rows(std::begin(kTestRows), std::end(kTestRows));
  rows[1].in_place_needs_staging = true;  // lean
  Request request = staged_in_a_graph();
  request.input_reach = request.output_reach = BufferReach::kSwitch;
  EXPECT_EQ(choose(request, eight_h200(), lean_up_to(64 * MiB), rows)->algorithm,
            "all_reduce/lean");
  request.in_place = true;
  EXPECT_EQ(choose(request, eight_h200(), lean_up_to(64 * MiB), rows)->algorithm,
            "all_reduce/nccl");
}

// Where it changes on 4x H200 with plain buffers and the tables that are shipped.
TEST(Staged, WhatTheShippedTableNamesForPlainBuffers) {
  const auto table = TuningTable::load("", "");
  ASSERT_TRUE(table.is_ok()) << table.status().to_string();
  Topology topology = eight_h200();
  topology.ranks = 4;
  const auto taken = [&](std::size_t bytes, bool captured) {
    Request request = staged_in_a_graph();
    request.dtype = DataType::kBfloat16;
    request.count = bytes / 2;
    request.capturing = captured;
    request.staging_bytes = captured ? 256 * KiB : 16 * MiB;
    request.packet_bytes = 8 * MiB;
    return choose(request, topology, *table)->algorithm;
  };
  for (const bool captured : {false, true}) {
    EXPECT_EQ(taken(64 * KiB, captured), "all_reduce/one_shot_push");
    EXPECT_EQ(taken(4 * MiB, captured), "all_reduce/two_shot_push");
    EXPECT_EQ(taken(8 * MiB, captured), "all_reduce/two_shot");
    EXPECT_EQ(taken(16 * MiB, captured), "all_reduce/nccl");  // without room for a ring
  }
}

// 16 MiB of plain buffers in a graph of 4 GPUs were measured at 412 to 708 us with the rows that
// stage, at 98 with NCCL, and at 81 to 104 with those whose data goes through staging anyway.
TEST(Staged, TheModelOfTheRealRowsIsNearWhatWasMeasured) {
  Topology topology = eight_h200();
  topology.ranks = 4;
  Request request = staged_in_a_graph();
  request.dtype = DataType::kBfloat16;
  request.count = 8 * MiB;
  for (const Candidate& row : candidates(request, topology, TuningTable::empty())) {
    const Algorithm& known = **find_algorithm(request.collective, row.algorithm);
    if (!row.possible || known.program != nullptr) continue;  // nobody measured copy engines there
    if (row.algorithm == "all_reduce/nccl") {
      EXPECT_NEAR(row.predicted_us, 98, 0.15 * 98);
      EXPECT_TRUE(row.chosen);
    } else if (!goes_through_staging(known, request, topology)) {
      EXPECT_NEAR(row.predicted_us, 92, 0.25 * 92) << row.algorithm;
    } else {
      EXPECT_GT(row.predicted_us, 0.9 * 412) << row.algorithm;
      EXPECT_LT(row.predicted_us, 1.1 * 708) << row.algorithm;
    }
  }
}

Request random_request(std::mt19937& random) {
  Request request;
  request.count = random() >> (random() % 32);
  request.dtype = kAllDataTypes[random() % kAllDataTypes.size()];
  request.op = kAllOps[random() % kAllOps.size()];
  request.deterministic = random() % 4 == 0;
  request.only_nccl = random() % 8 == 0;
  if (random() % 2 == 0) request.set_plain();
  request.in_place = random() % 2 == 0;
  request.capturing = random() % 2 == 0;
  request.nccl_ready = !request.capturing || random() % 2 == 0;
  request.windows.ready = request.nccl_ready && (!request.capturing || random() % 2 == 0);
  request.in_blocks = request.symmetric() && random() % 4 != 0;
  if (random() % 8 == 0) request.windows.none = "rank 1: no room";
  request.staging_bytes = request.capturing ? 256 * KiB : 16 * MiB;
  if (random() % 4 == 0) request.algorithm = kTestRows[random() % std::size(kTestRows)].id;
  if (random() % 4 == 0) request.tune = "all_reduce:4K-1M:@lean";
  return request;
}

Topology random_topology(std::mt19937& random) {
  Topology topology = eight_h200();
  topology.backend = random() % 2 == 0 ? Backend::kCuda : Backend::kHost;
  topology.ranks = static_cast<int>(random() % 18) + 1;
  if (random() % 4 == 0) topology.within_nodes = Reach::kNone;
  topology.nccl = random() % 2 == 0;
  topology.nccl_version = topology.nccl ? std::array{22605, 22803, 22907}[random() % 3] : 0;
  return topology;
}

// Equal values give equal answers, whatever was asked before; and no answer is a row that cannot
// run. What this process's environment and machine are does not enter.
TEST(Choose, IsAPureFunction) {
  const TuningTable table =
      table_of({{PlanSource::kUserCache, "c", {entry_of(2 * KiB, MiB, "all_reduce/window")}},
                {PlanSource::kShipped, "s", {entry_of(0, MiB, "all_reduce/ring")}}});
  struct Asked {
    Request request;
    Topology topology;
    Result<Plan> answer;
  };
  std::vector<Asked> asked;
  std::mt19937 random(5);
  for (int i = 0; i < 2000; ++i) {
    Request request = random_request(random);
    Topology topology = random_topology(random);
    auto answer = choose(request, topology, table, kTestRows);
    if (answer.is_ok()) {
      for (const Candidate& candidate : candidates(request, topology, table, kTestRows)) {
        EXPECT_EQ(candidate.chosen, candidate.algorithm == answer->algorithm);
        EXPECT_TRUE(!candidate.chosen || candidate.possible) << candidate.why;
      }
    }
    asked.push_back({std::move(request), std::move(topology), std::move(answer)});
  }
  ::setenv("TUTTI_TUNE", "all_reduce:@nccl", 1);
  int answers = 0;
  for (auto it = asked.rbegin(); it != asked.rend(); ++it) {
    const auto again = choose(it->request, it->topology, table, kTestRows);
    ASSERT_EQ(again.is_ok(), it->answer.is_ok());
    if (again.is_ok()) {
      EXPECT_EQ(*again, *it->answer);
      ++answers;
    } else {
      EXPECT_EQ(again.status().to_string(), it->answer.status().to_string());
    }
  }
  ::unsetenv("TUTTI_TUNE");
  EXPECT_GT(answers, 500);
  EXPECT_LT(answers, 1900);
}

TEST(Choose, WithTheRealRows) {
  const auto plan = choose(bytes_of(1024), eight_h200(), TuningTable::empty());
  ASSERT_TRUE(plan.is_ok()) << plan.status().to_string();
  EXPECT_TRUE(find_algorithm(Collective::kAllReduce, plan->algorithm).is_ok());
  EXPECT_GT(plan->blocks, 0);
}

TEST(Reasons, GroupAlgorithmsThatHaveTheSame) {
  Reasons reasons;
  reasons.add("one_shot", "needs peers");
  reasons.add("nccl", "needs NCCL");
  reasons.add("two_shot", "needs peers");
  EXPECT_EQ(reasons.lines(),
            (std::vector<std::string>{"one_shot, two_shot: needs peers", "nccl: needs NCCL"}));
  reasons.add("ring", "needs peers");
  EXPECT_EQ(reasons.lines().front(), "one_shot, two_shot, ring: needs peers");
  reasons.add("push", "needs peers");
  EXPECT_EQ(reasons.lines().front(), "one_shot, two_shot and 2 more: needs peers");
}

}  // namespace
}  // namespace tutti
