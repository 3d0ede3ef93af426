// `tutti bench put` and `tutti bench get` on the host backend, good and bad.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "run_tutti.hpp"

namespace tutti::cli {
namespace {

using testing::HasSubstr;

class BenchOneSided : public testing::TestWithParam<const char*> {};

TEST_P(BenchOneSided, MeasuresEachSizeAndChecksIt) {
  for (const char* launch : {"processes", "threads"}) {
    const Ended ended = bench(GetParam(), {"--ranks", "1,3", "--bytes", "0,1000,262144", "--launch",
                                           launch, "--format", "json"});
    ASSERT_EQ(ended.exit_code, 0) << ended.err;
    const auto rows = nlohmann::json::parse(ended.out).at("rows");
    ASSERT_EQ(rows.size(), 6u);
    for (const auto& row : rows) {
      EXPECT_EQ(row.at("collective"), GetParam());
      EXPECT_EQ(row.at("algorithm"), "kernel");
      EXPECT_EQ(row.at("op"), "none");
      EXPECT_EQ(row.at("wrong"), 0) << row;
      EXPECT_GT(row.at("time_us").at("p50").get<double>(), 0);
      EXPECT_EQ(row.at("busbw_gbps"), row.at("algbw_gbps"));
    }
  }
}

TEST_P(BenchOneSided, FindsOneBit) {
  const Ended ended = bench(GetParam(), {"--bytes", "4096", "--inject", "flip:1:kernel"});
  EXPECT_NE(ended.exit_code, 0);
  EXPECT_THAT(ended.out + ended.err, HasSubstr("rank 1, element 0 of"));
}

TEST_P(BenchOneSided, ARankThatDiesEndsIt) {
  const Ended ended = bench(GetParam(), {"--bytes", "4096", "--inject", "crash:1"});
  EXPECT_NE(ended.exit_code, 0);
  EXPECT_THAT(ended.out + ended.err, HasSubstr("rank 1: ended by signal 9"));
}

TEST_P(BenchOneSided, RefusesWhatItCannotMeasure) {
  EXPECT_THAT(bench(GetParam(), {"--algorithms", "copy_engine"}).err, HasSubstr("on the host"));
  EXPECT_THAT(bench(GetParam(), {"--algorithms", "ring"}).err, HasSubstr("copy_engine"));
  EXPECT_NE(bench(GetParam(), {"--ranks", "17"}).exit_code, 0);
}

INSTANTIATE_TEST_SUITE_P(Both, BenchOneSided, testing::Values("put", "get"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace tutti::cli
