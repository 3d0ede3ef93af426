// Rows of `tutti bench all_gather_matmul` in files, tables and the report.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/all_gather_matmul/print.hpp"
#include "bench/matmul/print.hpp"
#include "report/pages.hpp"
#include "some_record.hpp"

namespace tutti::cli {
namespace {

using testing::HasSubstr;

Row some_gated_row(const std::string& algorithm, const std::string& order, double time_us) {
  Row row = some_matmul_row("own_matmul", 4096, 1);
  row.collective = kAllGatherMatmulName;
  row.algorithm = algorithm;
  row.time_us.p50 = time_us;
  row.matmul->arrival = ArrivalRow{.ranks = 8,
                                   .chunks = 2,
                                   .arrival = "model",
                                   .trace = "modelled: a machine",
                                   .order = order,
                                   .over_own = time_us / 500};
  if (order.empty()) return row;
  ArrivalRow& arrival = *row.matmul->arrival;
  arrival.last_us = 510;
  arrival.bound_us = 510;
  arrival.over_bound = time_us / 510;
  arrival.predicted_us = 525;
  arrival.predicted_error = 525 / time_us - 1;
  arrival.parts = {.forecast_us = 480,
                   .clock_us = 10,
                   .deficit_us = 10,
                   .order_us = 2,
                   .gating_us = 22.5,
                   .contention_us = 0.5};
  return row;
}

Record gated_record() {
  Record record = some_record();
  record.environment.gpus = 1;
  record.rows = {some_gated_row("own_matmul_only", "", 500),
                 some_gated_row("fused_rotated", "rotated", 520)};
  record.rows[0].matmul->noise = MatmulNoise{0.999, 1, 1.001};
  return record;
}

TEST(AllGatherMatmulRows, SurviveAFile) {
  Record record = gated_record();
  record.rows[1].matmul->arrival->predicted_error = 0.01;
  record.rows[1].matmul->arrival->over_bound = 1.02;
  const auto again = record_from_json_text(to_json_text(record), "all_gather_matmul.json");
  ASSERT_TRUE(again.is_ok()) << again.status().to_string();
  for (const std::size_t k : {0, 1}) EXPECT_EQ(again->rows[k].matmul, record.rows[k].matmul);
  EXPECT_EQ(to_json_text(*again), to_json_text(record));
}

TEST(AllGatherMatmulRows, ReplaceThoseOfTheSameArrival) {
  const Record record = gated_record();
  EXPECT_EQ(merge(record, record).rows.size(), 2u);
  const auto merged_with = [&](auto change) {
    Record added = record;
    added.rows.resize(1);
    change(*added.rows.front().matmul->arrival);
    return merge(record, added).rows.size();
  };
  EXPECT_EQ(merged_with([](ArrivalRow& row) { row.over_own = 2; }), 2u);
  EXPECT_EQ(merged_with([](ArrivalRow& row) { row.ranks = 4; }), 3u);
  EXPECT_EQ(merged_with([](ArrivalRow& row) { row.chunks = 1; }), 3u);
  EXPECT_EQ(merged_with([](ArrivalRow& row) { row.arrival = "open"; }), 3u);
}

TEST(AllGatherMatmulRows, HaveColumnsOfTheirOwnInCsv) {
  const std::string text = print_csv(gated_record());
  EXPECT_THAT(text, HasSubstr("config,tflops,ratio,shards,chunks,arrival,order,over_own,last_us,"
                              "bound_us,over_bound,predicted_us,predicted_error\n"
                              "all_gather_matmul,own_matmul_only,cuda,1,bf16,none,"));
  EXPECT_THAT(text, HasSubstr("4 stages\",700.000,1.000000,8,2,\"model\",,1.000000,0.000,0.000,"
                              "0.000000,0.000,0.000000\n"));
  EXPECT_THAT(text, HasSubstr("4 stages\",700.000,1.000000,8,2,\"model\",rotated,1.040000,510.000,"
                              "510.000,1.019608,525.000,0.009615\n"));
}

TEST(AllGatherMatmulRows, AreALineEachInATable) {
  const std::string text = make_gated_table_printer({})->whole(gated_record());
  EXPECT_THAT(text, HasSubstr("# bf16, B row-major, backend cuda, 8 shards x 2 chunks, arrival "
                              "model (modelled: a machine)\n"));
  EXPECT_THAT(text,
              HasSubstr("    4096    3584    8192     520.0     501.0    700.0   1.0400   1410"
                        "     510.0     510.0   1.0196     525.0   +1.0%      0  "
                        "fused_rotated (128x256x64, cluster 2x1, 4 stages)\n"));
  EXPECT_THAT(text, HasSubstr("        -         -        -         -       -      0  "
                              "own_matmul_only ("));
  EXPECT_THAT(text,
              HasSubstr("# 4096x3584x8192: own_matmul_only against itself: ratio 1.0000, 80 % "
                        "of the rounds 0.9990 to 1.0010\n"));
}

TEST(AllGatherMatmulRows, HaveASectionInTheReportAndNoChart) {
  const std::vector<ResultFile> files = {{.path = "results/h100x1/all_gather_matmul.json",
                                          .machine = "h100x1",
                                          .what = "all_gather_matmul",
                                          .record = gated_record()}};
  const std::vector<Page> pages = render_docs(files, "docs/benchmarks.md");
  ASSERT_EQ(pages.size(), 1u);
  EXPECT_THAT(pages[0].text, HasSubstr("## all_gather_matmul on h100x1"));
  EXPECT_THAT(pages[0].text,
              HasSubstr("| 4096 | 3584 | 8192 | fused_rotated | 520.0 | 700.0 | 1.0400 | 510.0 | "
                        "510.0 | 1.0196 | 525.0 | +1.0% | 128x256x64, cluster 2x1, 4 stages |\n"));
  EXPECT_EQ(print_matmul_markdown(gated_record()).find("own_matmul_only us"), std::string::npos);
}

}  // namespace
}  // namespace tutti::cli
