// From what ranks of `tutti bench overlap` measured to what is printed and kept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/units.hpp"
#include "bench/overlap/group.hpp"
#include "bench/overlap/lanes.hpp"
#include "bench/overlap/print.hpp"
#include "report/pages.hpp"
#include "some_record.hpp"

namespace tutti::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

OverlapOptions some_options() {
  OverlapOptions options;
  options.bench.collective = Collective::kAllGather;
  options.bench.ranks = {2};
  options.bench.dtype = DataType::kFloat16;
  options.matmul = {.m = 1000, .n = 2000, .k = 500, .dtype = DataType::kFloat16};
  options.ag_mb = 3;
  options.phases = {Phase::kMatmul, Phase::kAllGather, Phase::kSequential, Phase::kOverlap};
  return options;
}

OverlapMeasurement measured(Phase phase, const LaneTimes& times) {
  OverlapMeasurement m{.phase = phase,
                       .algorithm = gathers(phase) ? "push" : "",
                       .library = multiplies(phase) ? "OpenBLAS 0.3.21" : "",
                       .samples_us = {times.total, times.total + 2, times.total + 4},
                       .wrong = 0};
  if (multiplies(phase)) m.matmul_us = std::vector<double>(3, times.matmul);
  if (gathers(phase)) m.gather_us = std::vector<double>(3, times.gather);
  return m;
}

OverlapOutcome some_outcome() {
  const std::vector<OverlapMeasurement> slow = {
      measured(Phase::kMatmul, {.total = 98, .matmul = 98}),
      measured(Phase::kAllGather, {.total = 58, .gather = 60}),
      measured(Phase::kSequential, {.total = 158, .matmul = 100, .gather = 60}),
      measured(Phase::kOverlap, {.total = 123, .matmul = 110, .gather = 80})};
  std::vector<OverlapMeasurement> fast = slow;
  for (OverlapMeasurement& m : fast) {
    for (double& sample : m.samples_us) sample -= 10;
  }
  return {.ranks = 2, .measurements = {fast, slow}};
}

TEST(OverlapRows, AreComparedWithTheirParts) {
  const auto rows = rows_of(some_outcome(), some_options());
  ASSERT_TRUE(rows.is_ok()) << rows.status().to_string();
  ASSERT_EQ(rows->size(), 4u);
  const Row& matmul = (*rows)[0];
  EXPECT_EQ(matmul.algorithm, "matmul");
  EXPECT_EQ(matmul.bytes, 0u);
  EXPECT_EQ(matmul.time_us.p50, 100);
  EXPECT_DOUBLE_EQ(matmul.overlap->mean_us, 100);
  EXPECT_NEAR(matmul.overlap->tflops, 2e9 / 98e-6 / 1e12, 1e-6);
  EXPECT_EQ(matmul.overlap->exposed_us, std::nullopt);
  const Row& gather = (*rows)[1];
  EXPECT_EQ(gather.bytes, 6 * MiB);
  EXPECT_DOUBLE_EQ(gather.algbw_gbps, 6.0 * MiB / 60 / 1e3);
  EXPECT_DOUBLE_EQ(gather.busbw_gbps, gather.algbw_gbps / 2);
  const OverlapRow& sequential = *(*rows)[2].overlap;
  EXPECT_EQ(sequential.exposed_us, 60);
  EXPECT_DOUBLE_EQ(*sequential.efficiency, 100.0 / 160);
  const OverlapRow& overlap = *(*rows)[3].overlap;
  EXPECT_EQ(overlap.exposed_us, 25);
  EXPECT_DOUBLE_EQ(*overlap.efficiency, 100.0 / 125);
  EXPECT_DOUBLE_EQ(*overlap.matmul_slowdown, 110.0 / 100);
  ASSERT_EQ(overlap.per_rank.size(), 2u);
  EXPECT_EQ(overlap.per_rank[0], (RankTimes{115, 115, 117, 117}));
  EXPECT_EQ(overlap.per_rank[1], (RankTimes{125, 125, 127, 127}));
}

TEST(OverlapRows, TheSlowestRanksClockCounts) {
  OverlapOutcome outcome = some_outcome();
  outcome.measurements[0][3].megahertz = {1980, 1970, 1990};
  outcome.measurements[1][3].megahertz = {1755, 1700, 1800};
  const auto rows = rows_of(outcome, some_options());
  ASSERT_TRUE(rows.is_ok()) << rows.status().to_string();
  EXPECT_EQ(rows->back().overlap->megahertz, 1755);
  EXPECT_EQ(rows->front().overlap->megahertz, 0);
  const std::string text = print_overlap_table({.rows = *rows});
  EXPECT_THAT(text, HasSubstr("   1755       0"));
}

TEST(OverlapRows, RestAndWhatIsBesideTellRowsApart) {
  OverlapOptions options = some_options();
  const OverlapRow plain = *rows_of(some_outcome(), options)->front().overlap;
  options.pause_ms = 20;
  const OverlapRow rested = *rows_of(some_outcome(), options)->front().overlap;
  options.compute = Compute::kArithmetic;
  const OverlapRow arithmetic = *rows_of(some_outcome(), options)->front().overlap;
  EXPECT_TRUE(plain.same_matmul(plain));
  EXPECT_FALSE(plain.same_matmul(rested));
  EXPECT_FALSE(rested.same_matmul(arithmetic));
  EXPECT_EQ(arithmetic.compute, "arithmetic");
}

TEST(OverlapRows, NothingIsExposedBelowZero) {
  OverlapOutcome outcome = some_outcome();
  for (auto& rank : outcome.measurements) rank[3].samples_us = {90, 90, 90};
  EXPECT_EQ(rows_of(outcome, some_options())->back().overlap->exposed_us, 0);
}

TEST(OverlapRows, WithoutThePartsThereIsNoComparison) {
  OverlapOutcome outcome = some_outcome();
  for (auto& rank : outcome.measurements) rank.erase(rank.begin());  // no matmul
  const auto rows = rows_of(outcome, some_options());
  EXPECT_EQ(rows->back().overlap->exposed_us, std::nullopt);
  EXPECT_EQ(rows->back().overlap->efficiency, std::nullopt);
  EXPECT_THAT(print_overlap_table({.rows = *rows}), HasSubstr("n/a"));
}

TEST(OverlapRows, RanksThatMeasuredOtherThingsAreAMismatch) {
  OverlapOutcome outcome = some_outcome();
  outcome.measurements[1][2].algorithm = "one_shot_push";
  EXPECT_EQ(rows_of(outcome, some_options()).status().code(), StatusCode::kMismatch);
}

TEST(OverlapRows, WrongElementsAreAddedUp) {
  OverlapOutcome outcome = some_outcome();
  outcome.measurements[0][3].wrong = 2;
  outcome.measurements[1][3].wrong = 3;
  EXPECT_EQ(rows_of(outcome, some_options())->back().wrong, 5u);
}

TEST(OverlapRows, ArePrintedPerRankAndForAll) {
  const std::string text = print_overlap_table({.rows = *rows_of(some_outcome(), some_options())});
  EXPECT_THAT(text, HasSubstr("m 1000, n 2000, k 500, OpenBLAS 0.3.21; 3M from each rank"));
  EXPECT_THAT(text,
              HasSubstr("     overlap            push        1     125.0     125.0     127.0"));
  EXPECT_THAT(text,
              HasSubstr("     overlap            push  slowest     125.0     125.0     127.0 "
                        "    127.0     18.2     39.3      25.0   0.800  1.100x       -       0\n"));
}

TEST(OverlapRows, AreOneLinePerAlgorithmInMarkdown) {
  const std::string text =
      print_overlap_markdown(Record{.rows = *rows_of(some_outcome(), some_options())});
  EXPECT_THAT(text, HasSubstr("| push | 100.0 | 60.00 | 160.0 | 125.0 | 25.0 | 0.800 | 1.100x | "
                              "20.4 | 52.4 |\n"));
  EXPECT_THAT(text, Not(HasSubstr("| matmul |")));
}

TEST(OverlapRows, SurviveAFile) {
  Record record = some_record();
  record.rows = *rows_of(some_outcome(), some_options());
  const std::string text = to_json_text(record);
  const auto again = record_from_json_text(text, "overlap.json");
  ASSERT_TRUE(again.is_ok()) << again.status().to_string();
  EXPECT_EQ(to_json_text(*again), text);
  EXPECT_EQ(again->rows[3].overlap->per_rank, record.rows[3].overlap->per_rank);
  EXPECT_EQ(again->rows[3].overlap->exposed_us, 25);
  EXPECT_EQ(again->rows[0].overlap->exposed_us, std::nullopt);
}

TEST(OverlapRows, ReplaceThoseOfTheSamePhaseAndMatmul) {
  Record old_record = some_record();
  old_record.rows = *rows_of(some_outcome(), some_options());
  OverlapOptions other = some_options();
  other.matmul.k = 501;
  Record added = old_record;
  EXPECT_EQ(merge(old_record, added).rows.size(), 4u);
  added.rows = *rows_of(some_outcome(), other);
  EXPECT_EQ(merge(old_record, added).rows.size(), 8u);
}

TEST(OverlapRows, HaveASectionInTheReport) {
  Record record = some_record();
  record.rows = {some_overlap_row(Phase::kMatmul, 1600), some_overlap_row(Phase::kAllGather, 1300),
                 some_overlap_row(Phase::kSequential, 2900),
                 some_overlap_row(Phase::kOverlap, 1800)};
  const std::vector<ResultFile> files = {{.path = "results/h200x8/overlap.json",
                                          .machine = "h200x8",
                                          .what = "overlap",
                                          .record = record}};
  const std::vector<Page> pages = render_docs(files, "docs/benchmarks.md");
  ASSERT_EQ(pages.size(), 2u);
  EXPECT_THAT(pages[0].text, HasSubstr("## overlap on h200x8"));
  EXPECT_THAT(pages[0].text,
              HasSubstr("k 8192, cuBLASLt 13.0.2; 64M from each rank** (us, p50; NVLink "
                        "multicast: off for all libraries; with it: not measured)"));
  EXPECT_THAT(pages[0].text,
              HasSubstr("| copy_engine | 1600 | 1300 | 2900 | 1800 | 200.0 | n/a |"));
}

}  // namespace
}  // namespace tutti::cli
