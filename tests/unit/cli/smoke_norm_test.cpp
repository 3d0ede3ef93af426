// all_reduce_residual_rms_norm on the command line, on the host backend, good and bad.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "run_tutti.hpp"

namespace tutti::cli {
namespace {

using testing::HasSubstr;

constexpr const char* kName = "all_reduce_residual_rms_norm";

TEST(BenchNorm, MeasuresEveryRowAndChecksIt) {
  for (const char* dtype : {"bf16", "fp16", "fp32"}) {
    const Ended ended = bench(kName, {"--ranks", "2,3", "--rows", "1,3,16", "--hidden", "1032",
                                      "-d", dtype, "--format", "json"});
    ASSERT_EQ(ended.exit_code, 0) << ended.err;
    const auto rows = nlohmann::json::parse(ended.out).at("rows");
    EXPECT_EQ(rows.size(), 2u * 3u * 4u);
    for (const auto& row : rows) {
      EXPECT_EQ(row.at("collective"), kName);
      EXPECT_EQ(row.at("wrong"), 0) << row;
      EXPECT_EQ(row.at("hidden"), 1032);
    }
  }
}

TEST(BenchNorm, FindsOneBit) {
  const Ended ended =
      bench(kName, {"--rows", "2", "--hidden", "1024", "--inject", "flip:1:two_shot"});
  EXPECT_NE(ended.exit_code, 0);
  EXPECT_THAT(ended.out + ended.err, HasSubstr("rank 1, element 0 of"));
}

TEST(BenchNorm, RefusesWhatItCannotMeasure) {
  EXPECT_THAT(bench(kName, {"--bytes", "1M"}).err, HasSubstr("--rows 1,2,4 --hidden 8192"));
  EXPECT_THAT(bench(kName, {"--rows", "2", "--hidden", "1024", "-d", "int32"}).err,
              HasSubstr("takes sums of fp16, bf16 and fp32"));
  EXPECT_THAT(bench(kName, {"--rows", "2", "--hidden", "1024", "--in-place"}).err,
              HasSubstr("neither --chained nor --in-place"));
  EXPECT_THAT(bench(kName, {"--rows", "2", "--hidden", "1000"}).err,
              HasSubstr("multiple of 8 from 1024"));
}

TEST(ExplainNorm, SaysWhichRowAndWhy) {
  const Ended ended = run_tutti({"explain", kName, "--gpu", "NVIDIA H200", "--ranks", "8", "--rows",
                                 "64", "--hidden", "8192"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("of 1M (524288 x bf16, sum), hidden 8192"));
  EXPECT_THAT(ended.out, HasSubstr("* all_reduce_residual_rms_norm/"));
  EXPECT_THAT(run_tutti({"explain", kName, "--bytes", "1M"}).err,
              HasSubstr("--rows and --hidden come together"));
}

}  // namespace
}  // namespace tutti::cli
