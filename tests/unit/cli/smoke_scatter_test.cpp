// reduce_scatter on the command line, on the host backend, good and bad.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "run_tutti.hpp"

namespace tutti::cli {
namespace {

using testing::HasSubstr;

// Three ranks have no 1024 bytes of floats in whole pieces: what is measured is what is told. The
// larger pieces begin within a period of the inputs, which is another one for each rank.
TEST(BenchScatter, MeasuresEveryRowAndChecksIt) {
  for (const char* op : {"sum", "avg"}) {
    const Ended ended = bench("reduce_scatter", {"--ranks", "2,3", "--bytes", "1024,262144",
                                                 "--format", "json", "--op", op});
    ASSERT_EQ(ended.exit_code, 0) << ended.err;
    const auto rows = nlohmann::json::parse(ended.out).at("rows");
    EXPECT_GE(rows.size(), 2u * 2u * 3u) << op;
    for (const auto& row : rows) {
      const double ranks = row.at("ranks");
      EXPECT_EQ(row.at("collective"), "reduce_scatter");
      EXPECT_EQ(row.at("op"), op);
      EXPECT_EQ(row.at("wrong"), 0) << row;
      EXPECT_EQ(row.at("bytes").get<int>() % (4 * row.at("ranks").get<int>()), 0);
      EXPECT_NEAR(row.at("busbw_gbps"), row.at("algbw_gbps").get<double>() * (ranks - 1) / ranks,
                  0.01 * row.at("algbw_gbps").get<double>() + 0.01);
    }
  }
}

// Rows that begin everywhere in a period of the inputs, and more of them than a period has.
TEST(BenchScatter, SplitsRows) {
  const Ended ended =
      bench("reduce_scatter", {"--ranks", "2,3,4", "--rows", "2,5,100", "--hidden", "1032",
                               "--split-rows", "--format", "json", "--check", "on"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const auto rows = nlohmann::json::parse(ended.out).at("rows");
  EXPECT_EQ(rows.size(), 9u);
  for (const auto& row : rows) {
    EXPECT_EQ(row.at("algorithm"), "pull_rows");
    EXPECT_EQ(row.at("hidden"), 1032);
    EXPECT_EQ(row.at("wrong"), 0) << row;
  }
  const Ended wrong = bench("reduce_scatter", {"--rows", "5", "--hidden", "1032", "--split-rows",
                                               "--inject", "flip:1:pull_rows"});
  EXPECT_NE(wrong.exit_code, 0);
  EXPECT_THAT(wrong.out + wrong.err, HasSubstr("rank 1, element 0 of 2580"));
  const Ended explained = run_tutti({"explain", "reduce_scatter", "--ranks", "2", "--backend",
                                     "host", "--rows", "5", "--hidden", "1032", "--split-rows"});
  EXPECT_THAT(explained.out, HasSubstr("* reduce_scatter/pull_rows"));
}

TEST(BenchScatter, FindsOneBit) {
  const Ended ended = bench("reduce_scatter", {"--bytes", "4096", "--inject", "flip:1:pull"});
  EXPECT_NE(ended.exit_code, 0);
  EXPECT_THAT(ended.out + ended.err, HasSubstr("rank 1, element 0 of 512"));
}

TEST(BenchScatter, RefusesWhatItCannotMeasure) {
  EXPECT_THAT(bench("reduce_scatter", {"--in-place"}).err,
              HasSubstr("its output is a part of an input"));
  EXPECT_THAT(bench("reduce_scatter", {"--chained"}).err,
              HasSubstr("its output is a part of an input"));
  EXPECT_THAT(bench("reduce_scatter", {"--algorithms", "flags"}).err,
              HasSubstr("known are pull, pull_tma, pull_rows"));
  EXPECT_THAT(bench("reduce_scatter", {"--split-rows"}).err,
              HasSubstr("--split-rows needs --rows and --hidden"));
  EXPECT_THAT(
      bench("reduce_scatter", {"--split-rows", "--ranks", "5", "--rows", "2", "--hidden", "1032"})
          .err,
      HasSubstr("rows of 1032 elements are not whole parts for 5 ranks"));
  for (const char* rows : {"1", "2,1"}) {
    EXPECT_THAT(bench("reduce_scatter", {"--split-rows", "--rows", rows, "--hidden", "1032"}).err,
                HasSubstr("one row is split as any message"));
  }
  EXPECT_THAT(
      run_tutti({"bench", "all_reduce", "--split-rows", "--rows", "2", "--hidden", "64"}).err,
      HasSubstr("reduce_scatter alone splits rows"));
  EXPECT_THAT(run_tutti({"explain", "reduce_scatter", "--split-rows"}).err,
              HasSubstr("--split-rows is of reduce_scatter, with --rows and --hidden"));
}

TEST(ExplainScatter, SaysWhichRowAndWhy) {
  const Ended ended = run_tutti(
      {"explain", "reduce_scatter", "--gpu", "NVIDIA H200", "--ranks", "8", "--bytes", "1M"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("reduce_scatter of 1M (524288 x bf16, sum), symmetric"));
  EXPECT_THAT(ended.out, HasSubstr("* reduce_scatter/one_shot_push"));
  EXPECT_THAT(ended.out, HasSubstr("selected automatically only by a tuning table"));
  const Ended staged = run_tutti({"explain", "reduce_scatter", "--gpu", "NVIDIA H200", "--ranks",
                                  "8", "--bytes", "64M", "--buffers", "plain"});
  EXPECT_THAT(staged.out, HasSubstr("8 passes through 8M of staging"));  // all that is put in
}

}  // namespace
}  // namespace tutti::cli
