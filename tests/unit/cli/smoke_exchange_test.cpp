// all_to_all and pieces of any lengths on the command line, on the host backend, good and bad.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "run_tutti.hpp"

namespace tutti::cli {
namespace {

using testing::HasSubstr;

// Three ranks have no 1024 bytes of floats in whole pieces: what is measured is what is told. The
// last size is more than a period of inputs a piece.
TEST(BenchExchange, MeasuresEveryRowAndChecksIt) {
  const Ended ended =
      bench("all_to_all", {"--ranks", "2,3", "--bytes", "1024,65536,262144", "--format", "json"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const auto rows = nlohmann::json::parse(ended.out).at("rows");
  EXPECT_GE(rows.size(), 2u * 3u * 3u);
  for (const auto& row : rows) {
    const double ranks = row.at("ranks");
    EXPECT_EQ(row.at("collective"), "all_to_all");
    EXPECT_EQ(row.at("op"), "none");
    EXPECT_EQ(row.at("wrong"), 0) << row;
    EXPECT_EQ(row.at("bytes").get<int>() % (4 * row.at("ranks").get<int>()), 0);
    EXPECT_NEAR(row.at("busbw_gbps"), row.at("algbw_gbps").get<double>() * (ranks - 1) / ranks,
                0.01 * row.at("algbw_gbps").get<double>() + 0.01);
  }
}

TEST(BenchExchange, FindsOneBit) {
  const Ended ended = bench("all_to_all", {"--bytes", "4096", "--inject", "flip:1:push"});
  EXPECT_NE(ended.exit_code, 0);
  EXPECT_THAT(ended.out + ended.err, HasSubstr("rank 1, element 0 of 1024"));
}

TEST(BenchExchange, RefusesWhatItCannotMeasure) {
  EXPECT_THAT(bench("all_to_all", {"--op", "max"}).err, HasSubstr("all_to_all reduces nothing"));
  EXPECT_THAT(bench("all_to_all", {"--in-place"}).err, HasSubstr("all_to_all takes two buffers"));
  EXPECT_THAT(bench("all_to_all", {"--chained"}).err, HasSubstr("its output is no input"));
  EXPECT_THAT(bench("all_to_all", {"--algorithms", "ring"}).err,
              HasSubstr("known are push, push_per_peer, one_shot_push"));
}

// Of pieces of any lengths.
TEST(BenchUneven, MeasuresEveryRowAndChecksIt) {
  for (const char* collective : {"all_gather_v", "reduce_scatter_v", "all_to_all_v"}) {
    const Ended ended =
        run_tutti({"bench", collective, "--backend", "host", "-n", "3", "-w", "1", "--ranks", "2,3",
                   "--bytes", "1024,262144", "--format", "json", "--algorithms", "all"});
    ASSERT_EQ(ended.exit_code, 0) << ended.err;
    const auto rows = nlohmann::json::parse(ended.out).at("rows");
    EXPECT_GE(rows.size(), 2u * 2u * 2u);
    for (const auto& row : rows) {
      const double ranks = row.at("ranks");
      EXPECT_EQ(row.at("collective"), collective);
      EXPECT_EQ(row.at("wrong"), 0) << row;
      const double share = (ranks + 1) / (2 * ranks) * (ranks - 1) / ranks;
      EXPECT_NEAR(row.at("busbw_gbps"), row.at("algbw_gbps").get<double>() * share,
                  0.01 * row.at("algbw_gbps").get<double>() + 0.01);
    }
  }
}

TEST(BenchUneven, FindsOneBit) {
  const Ended ended =
      run_tutti({"bench", "all_to_all_v", "--backend", "host", "-n", "3", "-w", "1", "--bytes",
                 "4096", "--inject", "flip:1:push", "--algorithms", "all"});
  EXPECT_NE(ended.exit_code, 0);
  EXPECT_THAT(ended.out + ended.err, HasSubstr("rank 1, element 0 of 768"));
}

TEST(ExplainExchange, SaysWhichRowAndWhy) {
  const Ended ended =
      run_tutti({"explain", "all_to_all", "--gpu", "NVIDIA H200", "--ranks", "8", "--bytes", "1M"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("all_to_all of 1M (524288 x bf16), symmetric"));
  EXPECT_THAT(ended.out, HasSubstr("* all_to_all/push"));
  EXPECT_THAT(ended.out, HasSubstr("selected automatically only by a tuning table"));
  const Ended staged = run_tutti({"explain", "all_to_all", "--gpu", "NVIDIA H200", "--ranks", "8",
                                  "--bytes", "64M", "--buffers", "plain"});
  EXPECT_THAT(staged.out, HasSubstr("8 passes through 8M of staging"));  // either side
}

}  // namespace
}  // namespace tutti::cli
