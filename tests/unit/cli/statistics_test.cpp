#include "bench/statistics.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace tutti::cli {
namespace {

TEST(Summarize, TakesPercentilesByNearestRank) {
  std::vector<double> samples(100);
  std::iota(samples.rbegin(), samples.rend(), 1.0);  // 100 down to 1
  EXPECT_EQ(summarize(samples), (Statistics{50, 90, 99, 1, 100, 100}));
}

TEST(Summarize, OfOneSampleIsThatSample) {
  EXPECT_EQ(summarize({7}), (Statistics{7, 7, 7, 7, 7, 1}));
}

TEST(Summarize, OfTwoSamplesTakesTheLowerAsMedian) {
  EXPECT_EQ(summarize({9, 3}), (Statistics{3, 9, 9, 3, 9, 2}));
}

TEST(Summarize, OfNothingIsZero) { EXPECT_EQ(summarize({}), Statistics{}); }

TEST(SlowestRank, IsTakenSampleBySample) {
  const auto slowest = slowest_rank({{1, 8, 3}, {4, 2, 3}, {0, 0, 9}});
  ASSERT_TRUE(slowest.is_ok());
  EXPECT_EQ(*slowest, (std::vector<double>{4, 8, 9}));
}

TEST(SlowestRank, RefusesRanksThatSampledDifferently) {
  const auto slowest = slowest_rank({{1, 2}, {1}});
  EXPECT_EQ(slowest.status().code(), StatusCode::kMismatch);
  EXPECT_EQ(slowest.status().message(), "rank 1 took 1 samples, rank 0 took 2");
}

TEST(Bandwidth, FollowsNcclTests) {
  EXPECT_DOUBLE_EQ(algorithm_bandwidth(1'000'000, 10), 100);
  EXPECT_DOUBLE_EQ(bus_bandwidth(Collective::kAllReduce, 100, 8), 175);
  EXPECT_DOUBLE_EQ(bus_bandwidth(Collective::kAllGather, 100, 8), 87.5);
  EXPECT_DOUBLE_EQ(bus_bandwidth(Collective::kReduceScatter, 100, 8), 87.5);
  EXPECT_DOUBLE_EQ(bus_bandwidth(Collective::kAllToAll, 100, 8), 87.5);
  EXPECT_DOUBLE_EQ(bus_bandwidth(Collective::kAllReduce, 100, 1), 0);
  EXPECT_DOUBLE_EQ(algorithm_bandwidth(0, 10), 0);
  EXPECT_DOUBLE_EQ(algorithm_bandwidth(10, 0), 0);
}

}  // namespace
}  // namespace tutti::cli
