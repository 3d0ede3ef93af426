// Rows of `tutti bench all_gather_matmul` with several ranks: how they are made, and in files,
// tables and the report.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/all_gather_matmul/ranks/group.hpp"
#include "bench/all_gather_matmul/ranks/print.hpp"
#include "bench/matmul/print.hpp"
#include "report/pages.hpp"
#include "some_record.hpp"

namespace tutti::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

GatherMatmulOptions gather_options() {
  GatherMatmulOptions options;
  options.matmul.bench.backend = Backend::kCuda;
  options.matmul.shapes = {{.m = 1000, .n = 1000, .k = 500}};
  options.matmul.dtypes = {DataType::kBfloat16};
  options.matmul.layouts = {MatrixLayout::kRowMajor};
  options.protocol = "put";
  return options;
}

GatherMatmulMeasurement gather_measurement(const std::string& algorithm, double us,
                                           double host_us) {
  return {.algorithm = algorithm,
          .config = "own_matmul 128x256x64",
          .samples_us = {us - 1, us, us + 1},
          .host_us = host_us,
          .megahertz = 1700 - host_us,
          .wrong = 0};
}

// Rank 1 is 10 us slower.
GatherMatmulOutcome gather_outcome() {
  GatherMatmulOutcome outcome;
  for (const double late : {0.0, 10.0}) {
    outcome.ranks.push_back({gather_measurement("cublaslt_matmul_only", 110 + late, late),
                             gather_measurement("own_matmul_only", 90 + late, late),
                             gather_measurement("unfused", 190 + late, 20 + late),
                             gather_measurement("pipelined_ring", 140 + late, 30 + late),
                             gather_measurement("fused", 115 + late, 40 + late)});
    outcome.ranks.back().back().last = true;
  }
  return outcome;
}

std::vector<Row> some_gathered_rows() {
  const auto rows = rows_of(gather_outcome(), gather_options());
  EXPECT_TRUE(rows.is_ok()) << rows.status().to_string();
  return rows.is_ok() ? *rows : std::vector<Row>{};
}

Record gathered_record() {
  Record record = some_record();
  record.rows = some_gathered_rows();
  return record;
}

TEST(GatherMatmulRows, AreOfTheSlowestRank) {
  const std::vector<Row> rows = some_gathered_rows();
  ASSERT_EQ(rows.size(), 5u);
  const Row& fused = rows[4];
  EXPECT_EQ(fused.collective, "all_gather_matmul");
  EXPECT_EQ(fused.ranks, 2);
  EXPECT_EQ(fused.time_us.p50, 125);
  EXPECT_THAT(fused.per_rank_p50_us, ElementsAre(115, 125));
  EXPECT_DOUBLE_EQ(fused.matmul->tflops, 8);
  EXPECT_EQ(fused.matmul->megahertz, 1650);
  const GatheredRow& gathered = *fused.matmul->gathered;
  EXPECT_EQ(gathered.host_us, 50);
  EXPECT_EQ(gathered.alone, "own_matmul_only");
  EXPECT_DOUBLE_EQ(*gathered.speed_up, 1.6);
  EXPECT_DOUBLE_EQ(*gathered.over_alone, 1.25);
  EXPECT_DOUBLE_EQ(*gathered.exposed_us, 25);
  EXPECT_EQ(rows[3].matmul->gathered->pipeline, "put, 4 streams");
  const GatheredRow& alone = *rows[0].matmul->gathered;
  EXPECT_EQ(alone.speed_up, std::nullopt);
  EXPECT_EQ(alone.exposed_us, std::nullopt);
  EXPECT_DOUBLE_EQ(*alone.over_alone, 1.2);
}

TEST(GatherMatmulRows, RanksMustHaveMeasuredTheSame) {
  GatherMatmulOutcome outcome = gather_outcome();
  outcome.ranks[1][2].algorithm = "nccl_unfused";
  EXPECT_EQ(rows_of(outcome, gather_options()).status().code(), StatusCode::kMismatch);
  outcome = gather_outcome();
  outcome.ranks[1][2].wrong = 3;
  EXPECT_EQ((*rows_of(outcome, gather_options()))[2].wrong, 3u);
}

TEST(GatherMatmulRows, SurviveAFile) {
  const Record record = gathered_record();
  const auto again = record_from_json_text(to_json_text(record), "all_gather_matmul.json");
  ASSERT_TRUE(again.is_ok()) << again.status().to_string();
  EXPECT_EQ(to_json_text(*again), to_json_text(record));
  EXPECT_EQ(again->rows[4].matmul->gathered, record.rows[4].matmul->gathered);
  EXPECT_EQ(again->rows[3].matmul->gathered->pipeline, "put, 4 streams");
  EXPECT_EQ(again->rows[0].matmul->gathered, record.rows[0].matmul->gathered);
}

TEST(GatherMatmulRows, ReplaceThoseOfTheSamePipeline) {
  const Record record = gathered_record();
  EXPECT_EQ(merge(record, record).rows.size(), 5u);
  const auto merged_with = [&](auto change) {
    Record added = record;
    added.rows = {record.rows[3]};
    change(added.rows.front());
    return merge(record, added).rows.size();
  };
  EXPECT_EQ(merged_with([](Row& row) { row.matmul->gathered->host_us = 1; }), 5u);
  EXPECT_EQ(merged_with([](Row& row) { row.matmul->gathered->pipeline = "get"; }), 6u);
  EXPECT_EQ(merged_with([](Row& row) { row.matmul->gathered->calls = 1; }), 6u);
  EXPECT_EQ(merged_with([](Row& row) { row.ranks = 4; }), 6u);
  EXPECT_EQ(merged_with([](Row& row) { row.matmul->m = 4; }), 6u);
}

TEST(GatherMatmulRows, AreALineEachInTables) {
  const std::string text = make_gathered_table_printer({})->whole(gathered_record());
  EXPECT_THAT(text, HasSubstr("# bf16, B row-major, backend cuda, 2 ranks (processes)\n"));
  EXPECT_THAT(text, HasSubstr("    1000    1000     500     125.0     126.0    8.000     1.600   "
                              "1.250     25.0     50.0   1650      0  fused (own_matmul "
                              "128x256x64)\n"));
  const std::string csv = print_csv(gathered_record());
  EXPECT_THAT(csv, HasSubstr(",predicted_error,pipeline,calls,host_us,alone,speed_up,over_alone,"
                             "exposed_us\n"));
  EXPECT_THAT(csv, HasSubstr(",,,,,,,,,,,\"put, 4 streams\",4,40.000,own_matmul_only,1.333333,"
                             "1.500000,50.000000\n"));
}

TEST(GatherMatmulRows, HaveATableAndChartsInTheReport) {
  const std::vector<ResultFile> files = {{.path = "results/h200x2/all_gather_matmul.json",
                                          .machine = "h200x2",
                                          .what = "all_gather_matmul",
                                          .record = gathered_record()}};
  const std::vector<Page> pages = render_docs(files, "docs/benchmarks.md");
  ASSERT_EQ(pages.size(), 3u);
  EXPECT_THAT(pages[0].text,
              HasSubstr("| 1000 | 1000 | 500 | fused | 125.0 | 8.000 | 1.600 | 1.250 | "
                        "25.0 | 50.0 | own_matmul 128x256x64 |\n"));
  EXPECT_EQ(pages[1].path,
            "docs/benchmarks/h200x2_all_gather_matmul_2_bf16_row_pipelined_ring_put_4_streams.svg");
  EXPECT_EQ(pages[2].path, "docs/benchmarks/h200x2_all_gather_matmul_2_bf16_row_fused.svg");
  EXPECT_THAT(pages[2].text, HasSubstr("1.600"));
  EXPECT_THAT(pages[2].text, HasSubstr("0.800"));  // 1 / 1.25
}

}  // namespace
}  // namespace tutti::cli
