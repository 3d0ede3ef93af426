// all_gather on the command line, on the host backend, good and bad.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "run_tutti.hpp"

namespace tutti::cli {
namespace {

using testing::HasSubstr;

// Three ranks have no 1024 bytes of floats in whole parts: what is measured is what is told.
TEST(BenchGather, MeasuresEveryRowAndChecksIt) {
  for (const char* mode : {"", "--in-place"}) {
    std::vector<std::string> words = {"--ranks",    "2,3",      "--bytes",
                                      "1024,65536", "--format", "json"};
    if (*mode != '\0') words.emplace_back(mode);
    const Ended ended = bench("all_gather", words);
    ASSERT_EQ(ended.exit_code, 0) << ended.err;
    const auto rows = nlohmann::json::parse(ended.out).at("rows");
    EXPECT_GE(rows.size(), 2u * 2u * 3u) << mode;
    for (const auto& row : rows) {
      const double ranks = row.at("ranks");
      EXPECT_EQ(row.at("collective"), "all_gather");
      EXPECT_EQ(row.at("op"), "none");
      EXPECT_EQ(row.at("wrong"), 0) << row;
      EXPECT_EQ(row.at("bytes").get<int>() % (4 * row.at("ranks").get<int>()), 0);
      EXPECT_NEAR(row.at("busbw_gbps"), row.at("algbw_gbps").get<double>() * (ranks - 1) / ranks,
                  0.01 * row.at("algbw_gbps").get<double>() + 0.01);
    }
  }
}

TEST(BenchGather, FindsOneBit) {
  const Ended ended = bench("all_gather", {"--bytes", "4096", "--inject", "flip:1:push"});
  EXPECT_NE(ended.exit_code, 0);
  EXPECT_THAT(ended.out + ended.err, HasSubstr("rank 1, element 0 of 1024"));
}

TEST(BenchGather, RefusesWhatItCannotMeasure) {
  EXPECT_THAT(bench("all_gather", {"--op", "max"}).err, HasSubstr("all_gather reduces nothing"));
  EXPECT_THAT(bench("all_gather", {"--chained"}).err, HasSubstr("its output is no input"));
  EXPECT_THAT(bench("all_gather", {"--algorithms", "two_shot"}).err,
              HasSubstr("known are push, push_per_peer, pull_tma"));
}

TEST(ExplainGather, SaysWhichRowAndWhy) {
  const Ended ended =
      run_tutti({"explain", "all_gather", "--gpu", "NVIDIA H200", "--ranks", "8", "--bytes", "1M"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("all_gather of 1M (524288 x bf16), symmetric"));
  EXPECT_THAT(ended.out, HasSubstr("* all_gather/push"));
  EXPECT_THAT(ended.out, HasSubstr("selected automatically only by a tuning table"));
  const Ended staged = run_tutti({"explain", "all_gather", "--gpu", "NVIDIA H200", "--ranks", "8",
                                  "--bytes", "64M", "--buffers", "plain"});
  EXPECT_THAT(staged.out, HasSubstr("8 passes through 8M of staging"));  // all that is put out
  EXPECT_THAT(staged.out, HasSubstr("1 pass through 8M of staging"));    // what one rank puts in
}

}  // namespace
}  // namespace tutti::cli
