// Collectives with a root, and barrier, on the command line, on the host backend, good and bad.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "run_tutti.hpp"

namespace tutti::cli {
namespace {

using testing::HasSubstr;

class BenchRooted : public testing::TestWithParam<const char*> {};

// Bytes are the larger side's; those of pieces cross a root's links but for its own.
TEST_P(BenchRooted, MeasuresEveryRowAndChecksIt) {
  const std::string collective = GetParam();
  const bool pieces = collective == "gather" || collective == "scatter";
  const Ended ended =
      bench(collective, {"--ranks", "2,3", "--bytes", "1024,262144", "--format", "json"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const auto rows = nlohmann::json::parse(ended.out).at("rows");
  EXPECT_GE(rows.size(), 2u * 2u * 2u);
  for (const auto& row : rows) {
    const double ranks = row.at("ranks"), crosses = pieces ? (ranks - 1) / ranks : 1;
    EXPECT_EQ(row.at("collective"), collective);
    EXPECT_EQ(row.at("op"), collective == "reduce" ? "sum" : "none");
    EXPECT_EQ(row.at("wrong"), 0) << row;
    EXPECT_NEAR(row.at("busbw_gbps"), row.at("algbw_gbps").get<double>() * crosses,
                0.01 * row.at("algbw_gbps").get<double>() + 0.01);
  }
}

// On rank 0, the root, which has an output of each.
TEST_P(BenchRooted, FindsOneBit) {
  const Ended ended = bench(GetParam(), {"--bytes", "4096", "--inject", "flip:0:one_shot_push"});
  EXPECT_NE(ended.exit_code, 0);
  EXPECT_THAT(ended.out + ended.err, HasSubstr("rank 0, element 0 of"));
}

// Another rank has what the others have not.
TEST_P(BenchRooted, AnyRankMayBeTheRoot) {
  const Ended ended =
      bench(GetParam(), {"--ranks", "3", "--bytes", "262144", "--root", "1", "--format", "json"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const auto rows = nlohmann::json::parse(ended.out).at("rows");
  EXPECT_GE(rows.size(), 2u);
  for (const auto& row : rows) {
    EXPECT_EQ(row.at("root"), 1);
    EXPECT_EQ(row.at("wrong"), 0) << row;
  }
  const Ended wrong = bench(GetParam(), {"--ranks", "3", "--bytes", "4096", "--root", "1",
                                         "--inject", "flip:1:one_shot_push"});
  EXPECT_THAT(wrong.out + wrong.err, HasSubstr("rank 1, element 0 of"));
  EXPECT_THAT(bench(GetParam(), {"--ranks", "2,3", "--root", "2"}).err,
              HasSubstr("--root 2: of 2 ranks the last one is 1"));
  EXPECT_THAT(bench("all_gather", {"--root", "0"}).err, HasSubstr("--root: all_gather has none"));
}

TEST_P(BenchRooted, RefusesWhatItCannotMeasure) {
  EXPECT_NE(bench(GetParam(), {"--in-place"}).exit_code, 0);
  EXPECT_THAT(bench(GetParam(), {"--chained"}).err, HasSubstr("chained"));
  EXPECT_THAT(bench(GetParam(), {"--algorithms", "hierarchical"}).err, HasSubstr("one_shot_push"));
}

INSTANTIATE_TEST_SUITE_P(Collectives, BenchRooted,
                         testing::Values("broadcast", "reduce", "gather", "scatter"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST(BenchBarrier, IsMeasuredOnce) {
  const Ended ended = bench("barrier", {"--ranks", "2,3", "--format", "json"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const auto rows = nlohmann::json::parse(ended.out).at("rows");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_GT(rows[1].at("time_us").at("p50").get<double>(), 0);
  EXPECT_THAT(bench("barrier", {"--bytes", "1K"}).err, HasSubstr("barrier moves nothing"));
}

TEST(ExplainRooted, SaysWhichRowAndWhy) {
  const Ended ended =
      run_tutti({"explain", "broadcast", "--gpu", "NVIDIA H200", "--ranks", "8", "--bytes", "64M"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("broadcast of 64M (33554432 x bf16), symmetric"));
  EXPECT_THAT(ended.out, HasSubstr("* broadcast/two_shot"));
}

}  // namespace
}  // namespace tutti::cli
