// Rows of `tutti bench matmul` in files, tables and the report.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/matmul/measure.hpp"
#include "bench/matmul/print.hpp"
#include "report/pages.hpp"
#include "some_record.hpp"

namespace tutti::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

Record matmul_record() {
  Record record = some_record();
  record.environment.gpus = 1;
  record.rows = {some_matmul_row("own_matmul", 4096, 0.98),
                 some_matmul_row("cublaslt_matmul", 4096, 1),
                 some_matmul_row("own_matmul", 8192, 1.01), some_matmul_row("auto", 8192, 1.005),
                 some_matmul_row("cublaslt_matmul", 8192, 1)};
  return record;
}

TEST(MatmulRows, SurviveAFile) {
  Record record = matmul_record();
  record.rows.front().matmul->tile = "128x256";
  record.rows.front().matmul->layout = "column";
  record.rows.front().matmul->products = 3;
  record.rows.front().matmul->bias = true;
  const auto again = record_from_json_text(to_json_text(record), "matmul.json");
  ASSERT_TRUE(again.is_ok()) << again.status().to_string();
  for (const std::size_t k : {0, 1}) EXPECT_EQ(again->rows[k].matmul, record.rows[k].matmul);
  EXPECT_EQ(to_json_text(*again), to_json_text(record));
}

TEST(MatmulRows, ReplaceThoseOfTheSameShapeAndTile) {
  const Record record = matmul_record();
  EXPECT_EQ(merge(record, record).rows.size(), 5u);
  const auto merged_with = [&](auto change) {
    Record added = record;
    added.rows.resize(1);
    change(added.rows.front());
    return merge(record, added).rows.size();
  };
  EXPECT_EQ(merged_with([](Row& row) { row.matmul->config = "another tile"; }), 5u);
  EXPECT_EQ(merged_with([](Row& row) { row.matmul->tile = "128x128"; }), 6u);
  EXPECT_EQ(merged_with([](Row& row) { row.matmul->k = 4096; }), 6u);
  EXPECT_EQ(merged_with([](Row& row) { row.matmul->layout = "column"; }), 6u);
  EXPECT_EQ(merged_with([](Row& row) { row.matmul->products = 2; }), 6u);
  EXPECT_EQ(merged_with([](Row& row) { row.matmul->bias = true; }), 6u);
  EXPECT_EQ(merged_with([](Row& row) { row.dtype = "fp16"; }), 6u);
  EXPECT_EQ(merged_with([](Row& row) { row.matmul.reset(); }), 6u);
}

TEST(MatmulRows, HaveColumnsOfTheirOwnInCsv) {
  Record record = matmul_record();
  record.rows.resize(1);
  const std::string text = print_csv(record);
  EXPECT_THAT(text, HasSubstr("wrong,chosen,m,n,k,layout,products,bias,config,tflops,ratio\n"
                              "matmul,own_matmul,cuda,1,bf16,none,"));
  EXPECT_THAT(text, HasSubstr("0,false,4096,3584,8192,row,1,false,"
                              "\"128x256x64, cluster 2x1, 4 stages\",686.000,0.980000\n"));
}

TEST(MatmulRows, AreALineEachInATable) {
  const std::string text = make_matmul_table_printer({})->whole(matmul_record());
  EXPECT_THAT(text, HasSubstr("# bf16, B row-major, backend cuda, cuBLASLt 13.0.2\n"));
  EXPECT_THAT(text,
              HasSubstr("    4096    3584    8192     510.2     511.2     509.2    686.0  0.9800   "
                        "1410   690   91.2%   95.0%      0  own_matmul (128x256x64, cluster 2x1, "
                        "4 stages)\n"));
  EXPECT_THAT(text, HasSubstr("# 8192x3584x8192: heuristic 2 of 8 against itself: ratio 1.0005, "
                              "80 % of the rounds 0.9980 to 1.0020\n"));
  EXPECT_THAT(text,
              HasSubstr("cuBLASLt 13.0.2, own_matmul: geometric mean of the ratios 0.9949\n"));
  EXPECT_THAT(text, HasSubstr("cuBLASLt 13.0.2, auto: geometric mean of the ratios 1.0050\n"));
}

TEST(MatmulRows, AreALinePerShapeInMarkdown) {
  const std::string text = print_matmul_markdown(matmul_record());
  EXPECT_THAT(text,
              HasSubstr("| m | n | k | own_matmul us | own_matmul TFLOP/s | own_matmul ratio | "
                        "cublaslt_matmul us | cublaslt_matmul TFLOP/s | auto us | auto TFLOP/s | "
                        "auto ratio | noise | own_matmul MHz | own_matmul util. | W | own_matmul "
                        "config |\n"));
  EXPECT_THAT(text,
              HasSubstr("| 4096 | 3584 | 8192 | 510.2 | 686.0 | 0.980 | 500.0 | 700.0 | n/a | n/a "
                        "| n/a | 0.998 to 1.002 | 1410 | 91.2% | 690 | 128x256x64, cluster 2x1, 4 "
                        "stages |\n"));
}

TEST(MatmulRows, OfAHostHaveFewColumns) {
  Record record = matmul_record();
  record.rows.resize(1);
  Row& row = record.rows.front();
  row.algorithm = "host_matmul";
  row.matmul = MatmulRow{.m = 8, .n = 9, .k = 10, .tflops = 0.5};
  EXPECT_THAT(print_matmul_markdown(record),
              HasSubstr("| m | n | k | host_matmul us | host_matmul TFLOP/s | host_matmul config "
                        "|\n|---:|---:|---:|---:|---:|---|\n| 8 | 9 | 10 | 510.2 | 0.500 |  |\n"));
}

TEST(MatmulRows, HaveASectionAndAChartInTheReport) {
  Record record = matmul_record();
  Row forced = some_matmul_row("own_matmul", 4096, 0.5);
  forced.matmul->tile = "128x128";  // is no contender of auto's
  record.rows.push_back(forced);
  const std::vector<ResultFile> files = {{.path = "results/h100x1/matmul.json",
                                          .machine = "h100x1",
                                          .what = "matmul",
                                          .record = record}};
  const std::vector<Page> pages = render_docs(files, "docs/benchmarks.md");
  ASSERT_EQ(pages.size(), 2u);
  EXPECT_EQ(pages[1].path, "docs/benchmarks/h100x1_matmul_bf16_row.svg");
  EXPECT_THAT(pages[0].text, HasSubstr("## matmul on h100x1"));
  EXPECT_THAT(pages[0].text, HasSubstr("](benchmarks/h100x1_matmul_bf16_row.svg)"));
  EXPECT_THAT(pages[0].text, HasSubstr("| 8192 | 3584 | 8192 | 495.0 | 707.0 | 1.010 | 500.0 | "
                                       "700.0 | 497.5 | 703.5 | 1.005 |"));
  const std::string& chart = pages[1].text;
  EXPECT_THAT(chart, HasSubstr("<title>own kernel: 0.980</title>"));
  EXPECT_THAT(chart, HasSubstr("<title>auto: 1.005</title>"));
  EXPECT_THAT(chart, HasSubstr("; geometric mean of the own kernel: 0.995; geometric mean of "
                               "auto: 1.005</text>"));
  EXPECT_THAT(chart, HasSubstr(">4096x3584x8192</text>"));
  EXPECT_THAT(chart, HasSubstr("stroke-dasharray"));
  EXPECT_THAT(chart, Not(HasSubstr("0.500")));
}

TEST(MatmulRows, WithoutCuBlasLtThereIsNoChart) {
  Record record = matmul_record();
  record.rows.resize(1);
  record.rows.front().matmul->ratio = 0;
  const std::vector<ResultFile> files = {
      {.path = "results/m/matmul.json", .machine = "m", .what = "matmul", .record = record}};
  EXPECT_EQ(render_docs(files, "docs/benchmarks.md").size(), 1u);
}

TEST(MatmulNoise, IsOfTheRatioRoundByRound) {
  std::vector<double> once, again;
  for (int k = 1; k <= 10; ++k) {
    once.push_back(100 + k);
    again.push_back(100);
  }
  const MatmulNoise noise = noise_of(once, again);
  EXPECT_DOUBLE_EQ(noise.p50, 1.05);
  EXPECT_DOUBLE_EQ(noise.p10, 1.02);
  EXPECT_DOUBLE_EQ(noise.p90, 1.09);
}

}  // namespace
}  // namespace tutti::cli
