#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/units.hpp"
#include "planning/choose.hpp"
#include "unit/planning/entries.hpp"
#include "unit/planning/rows.hpp"

namespace tutti {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

Request megabyte() {
  Request request;
  request.count = 524288;
  request.dtype = DataType::kBfloat16;
  return request;
}

TEST(Explain, SaysWhatWasAskedWhatIsTakenAndWhyOfEachRow) {
  Topology topology = eight_h200();
  topology.nccl = false;
  const std::string text = explain(megabyte(), topology, TuningTable::empty(), kTestRows);
  EXPECT_THAT(text, HasSubstr("all_reduce of 1M (524288 x bf16, sum), symmetric buffers\n"));
  EXPECT_THAT(text, HasSubstr(to_text(topology)));
  EXPECT_THAT(text, HasSubstr("plan: all_reduce/lean, 128 x 256 threads (model)\n"));
  EXPECT_THAT(text, ContainsRegex(
                        "  \\* all_reduce/lean +[0-9.]+ us  predicted  cost model; the fastest\n"));
  EXPECT_THAT(
      text, ContainsRegex(
                "    all_reduce/quick +[0-9.]+ us  predicted  cost model; no faster than lean\n"));
  EXPECT_THAT(text, ContainsRegex("    all_reduce/nccl +- +needs NCCL"));
}

TEST(Explain, MeasuredTimesNameTheirSource) {
  TuningEntry entry = entry_of(0, 2 * MiB, "all_reduce/lean");
  entry.time_us = 12.25;
  entry.runner_up = "all_reduce/nccl";
  entry.runner_up_us = 24.5;
  const auto table =
      TuningTable::from_sources({{PlanSource::kShipped, "shipped h200.json", {entry}}});
  const auto rows = candidates(megabyte(), eight_h200(), *table, kTestRows);
  ASSERT_EQ(rows.size(), std::size(kTestRows));
  EXPECT_TRUE(rows[1].chosen);
  EXPECT_EQ(rows[1].predicted_us, 12.25);
  EXPECT_TRUE(rows[1].measured);
  EXPECT_THAT(rows[1].why, AllOf(HasSubstr("measured on 2026-11-20"), HasSubstr("50 samples"),
                                 HasSubstr("shipped h200.json")));
  EXPECT_EQ(rows[4].predicted_us, 24.5);
  EXPECT_THAT(rows[4].why, HasSubstr("; slower than lean"));
  EXPECT_EQ(rows[0].why, "cost model; shipped h200.json names lean");
  EXPECT_FALSE(rows[0].measured);
  const std::string text = explain(megabyte(), eight_h200(), *table, kTestRows);
  EXPECT_THAT(text, ContainsRegex("  \\* all_reduce/lean +12.2 us  measured   measured on 2026"));
  EXPECT_THAT(text, ContainsRegex("    all_reduce/quick +[0-9.]+ us  predicted  cost model; "));
  EXPECT_FALSE(rows[3].possible);
  EXPECT_EQ(rows[3].predicted_us, 0);
}

TEST(Explain, SaysWhatStagingDoesToATablesChoice) {
  const auto table = TuningTable::from_sources(
      {{PlanSource::kShipped, "shipped h200.json", {entry_of(0, 2 * MiB, "all_reduce/lean")}}});
  Request request = megabyte();
  request.set_plain();
  request.staging_bytes = 64 * KiB;
  const std::string text = explain(request, eight_h200(), *table, kTestRows);
  EXPECT_THAT(text, HasSubstr(", staged\n"));
  EXPECT_THAT(text,
              HasSubstr("cost model, 16 passes through 64K of staging; shipped h200.json names "
                        "it for symmetric buffers; with staging, nccl is expected to be faster\n"));
  EXPECT_THAT(text, ContainsRegex("  \\* all_reduce/nccl +[0-9.]+ us  predicted  cost model; the "
                                  "fastest without staging\n"));
  EXPECT_THAT(text, ContainsRegex("    all_reduce/quick .*; it needs staging as well\n"));

  request.staging_bytes = MiB;  // one pass: the table's row stays
  EXPECT_THAT(explain(request, eight_h200(), *table, kTestRows),
              HasSubstr("1 pass through 1M of staging; shipped h200.json names it for symmetric "
                        "buffers\n"));
}

TuningEntry published(std::string family, std::string next) {
  TuningEntry entry = entry_of(0, 2 * MiB, "all_reduce/" + family);
  entry.provenance = Provenance::kPublished;
  entry.source = "a paper";
  entry.runner_up = next.empty() ? next : "all_reduce/" + next;
  entry.time_us = 0;
  return entry;
}

// Where the model has no say in it.
Topology eight_b200() {
  Topology topology = eight_h200();
  topology.compute = 100;
  return topology;
}

std::string explained(const TuningEntry& entry, const Topology& topology = eight_b200()) {
  const auto table = TuningTable::from_sources({{PlanSource::kPublished, "published", {entry}}});
  return explain(megabyte(), topology, *table, kTestRows);
}

TEST(Explain, WhatIsPublishedNamesItsSourceAndMakesUpNoTime) {
  const std::string text = explained(published("one_shot", ""));
  EXPECT_THAT(text, HasSubstr("(published)\n"));
  EXPECT_THAT(text,
              ContainsRegex("  \\* all_reduce/quick +[0-9.]+ us  predicted  cost model; published: "
                            "one_shot .a paper.\n"));
  EXPECT_THAT(text,
              ContainsRegex("    all_reduce/lean +[0-9.]+ us  predicted  cost model; published: "
                            "one_shot is faster\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("measured")));
}

TEST(Explain, SaysWhereAPublishedFamilyCannotRun) {
  EXPECT_THAT(explained(published("multicast", "one_shot")),
              ContainsRegex("  \\* all_reduce/quick .*published: multicast .a paper., which cannot "
                            "run here; the next is one_shot\n"));
  EXPECT_THAT(
      explained(published("multicast", "")),
      ContainsRegex("  \\* all_reduce/lean .*; the fastest; published: multicast .a paper., "
                    "which cannot run here\n"));
  Topology topology = eight_h200();
  topology.multicast = true;
  EXPECT_THAT(explained(published("multicast", "one_shot"), topology),
              ContainsRegex("  \\* all_reduce/switch .*published: multicast .a paper.\n"));
}

// Of rows that can run and are not taken.
constexpr const char* kReason =
    "; (slower than|no faster than|the call requests|TUTTI_TUNE requests|shipped names|"
    "published: two_shot is faster|it needs staging|selected automatically only)";

void expect_reasons(const Request& request, const TuningTable& table) {
  for (const Candidate& row : candidates(request, eight_h200(), table, kTestRows)) {
    EXPECT_FALSE(row.why.empty()) << row.algorithm;
    if (row.possible && !row.chosen) {
      EXPECT_THAT(row.why, ContainsRegex(kReason)) << row.algorithm;
    }
  }
}

TEST(Explain, EveryLineHasAReason) {
  TuningEntry measured = entry_of(0, 2 * MiB, "all_reduce/lean");
  measured.runner_up = "all_reduce/ring";
  measured.runner_up_us = 20;
  for (const TuningEntry& entry : {measured, published("two_shot", "one_shot")}) {
    const auto table = TuningTable::from_sources({{PlanSource::kShipped, "shipped", {entry}}});
    for (const bool symmetric : {true, false}) {
      Request request = megabyte();
      if (!symmetric) request.set_plain();
      request.staging_bytes = 64 * KiB;
      expect_reasons(request, TuningTable::empty());
      expect_reasons(request, *table);
      request.tune = "all_reduce:@ring";
      expect_reasons(request, *table);
      request.algorithm = "quick";
      expect_reasons(request, *table);
    }
  }
}

TEST(Explain, WithoutAPlanSaysWhy) {
  Request request = megabyte();
  request.algorithm = "switch";
  Topology topology = eight_h200();
  topology.within_nodes = Reach::kNone;
  const std::string text = explain(request, topology, TuningTable::empty(), kTestRows);
  EXPECT_THAT(
      text,
      HasSubstr("no plan: all_reduce/switch was requested, but cannot run: needs peer access"));
  EXPECT_THAT(text, testing::Not(HasSubstr("*")));
}

// No time is made up for what no switch does.
TEST(Explain, SaysWhatIsEmulated) {
  Request request = megabyte();
  const auto explained_now = [&] {
    return explain(request, eight_h200(), TuningTable::empty(), kTestRows);
  };
  EXPECT_THAT(
      explained_now(),
      ContainsRegex("    all_reduce/switch +- +needs NVLink multicast, which is off or missing; "
                    "requested by name, it is emulated by a loop over the peers\n"));
  request.algorithm = "switch";
  EXPECT_THAT(explained_now(),
              ContainsRegex("  \\* all_reduce/switch +- +emulated by a loop over the peers; "
                            "requested by the call\n"));
}

TEST(Explain, ColumnsAreAsWideAsTheLongestName) {
  const std::string text = explain(megabyte(), eight_h200(), TuningTable::empty(), kTestRows);
  const std::size_t heading = text.find("    algorithm  "), time = text.find("time", heading);
  EXPECT_EQ(time - heading, 4 + std::string("all_reduce/window").size() + 2 + 10 - 4);
}

TEST(Plans, AsText) {
  EXPECT_EQ(to_string(Plan{"all_reduce/lean", 64, 512, 256 * KiB, PlanSource::kShipped}),
            "all_reduce/lean, 64 x 512 threads, chunks of 256K (shipped)");
  EXPECT_EQ(to_string(Plan{"all_reduce/nccl", 0, 0, 0, PlanSource::kCall}),
            "all_reduce/nccl (call)");
}

}  // namespace
}  // namespace tutti
