// Links that are fitted to results: the search, what is held out, and the committed ones.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "model/fit.hpp"
#include "model/nelder_mead.hpp"
#include "output_file.hpp"

namespace tutti::model {
namespace {

TEST(NelderMead, FindsTheEndOfAValley) {
  const auto valley = [](const Point& at) {
    const double along = at[1] - at[0] * at[0];
    return 100 * along * along + (1 - at[0]) * (1 - at[0]);
  };
  const Point least = least_of(valley, {-1.2, 1}, {.tolerance = 1e-12, .evaluations = 1000});
  EXPECT_NEAR(least[0], 1, 1e-3);
  EXPECT_NEAR(least[1], 1, 1e-3);
  EXPECT_TRUE(least_of(valley, {}, {}).empty());
}

Links some_links() {
  return {.cluster = {.name = "some",
                      .between = {.gbit_per_s = 10, .delay_us = 8, .payload_part = 0.9},
                      .within = {.gbit_per_s = 10},
                      .processor = {.start_us = 4, .send_us = 2}}};
}

// What `links` would measure.
std::vector<MeasuredCall> calls_over(const Links& links) {
  std::vector<MeasuredCall> calls;
  for (const auto& algorithm : modelled_algorithms(Collective::kAllReduce, links.chunks)) {
    if (algorithm.name != "network_ring" && algorithm.name != "network_one_shot") continue;
    for (const int ranks : {2, 3, 4}) {
      for (const std::size_t bytes : {1024u, 16384u, 65536u, 262144u}) {
        calls.push_back({.algorithm = std::string(algorithm.name),
                         .call = {.schedule = algorithm.schedule, .bytes = bytes},
                         .ranks = ranks,
                         .us = 1});
      }
    }
  }
  const auto timed = compare(calls, links, 1);
  EXPECT_TRUE(timed.is_ok()) << timed.status().to_string();
  for (std::size_t i = 0; i < calls.size() && timed.is_ok(); ++i) {
    calls[i].us = (*timed)[i].modelled_us;
  }
  return calls;
}

TEST(ModelFit, HoldsOutEverySecondSizeAndNumberOfRanks) {
  const SplitCalls split = split_calls(calls_over(some_links()));
  EXPECT_EQ(split.fitted.size(), 8u);
  EXPECT_EQ(split.held_out.size(), 16u);
  for (const MeasuredCall& call : split.fitted) {
    EXPECT_NE(call.ranks, 3);
    EXPECT_TRUE(call.call.bytes == 1024 || call.call.bytes == 65536) << call.call.bytes;
  }
}

TEST(ModelFit, FindsALinkByItsTimes) {
  const std::vector<MeasuredCall> calls = calls_over(some_links());
  Links start = some_links();
  start.cluster.between.delay_us = 30;
  start.cluster.between.payload_part = 0.5;
  start.cluster.processor.start_us = 1;
  const Errors before = errors_of(*compare(calls, start, 1));
  EXPECT_GT(before.median_percent, 20);
  const auto fitted = fit(calls, start, 1);
  ASSERT_TRUE(fitted.is_ok()) << fitted.status().to_string();
  EXPECT_LT(fitted->held_out.median_percent, 2);
  EXPECT_LT(fitted->held_out.most_percent, 10);
  EXPECT_NEAR(fitted->links.cluster.between.payload_part, 0.9, 0.05);
  EXPECT_EQ(fitted->links.cluster.processor.receive_us, 0) << "what is 0 is not fitted";
}

TEST(ModelFit, NeedsTwoSizes) {
  std::vector<MeasuredCall> calls = calls_over(some_links());
  std::erase_if(calls, [](const MeasuredCall& call) { return call.call.bytes != 1024; });
  std::erase_if(calls, [](const MeasuredCall& call) { return call.ranks != 2; });
  EXPECT_EQ(fit(calls, some_links(), 1).status().code(), StatusCode::kInvalidArgument);
}

// Results of 2, 4 and 8 hosts.
std::vector<std::string> cells(const std::string& rate, const std::string& delay) {
  std::vector<std::string> files;
  for (const char* hosts : {"2", "4", "8"}) {
    files.push_back("namespaces/all_reduce_" + rate + hosts + delay);
  }
  return files;
}

// Committed links, and what they were fitted to: how far they may be from what was held out.
TEST(ModelFit, CommittedLinksAreCloseToWhatTheyWereNotFittedTo) {
  const struct {
    std::string links;
    std::vector<std::string> results;
    double most_median_percent;
  } kFitted[] = {
      {"nvlink4_h200", {"h200x4/all_reduce", "h200x2/all_reduce"}, 10},
      {"namespaces_1gbit", cells("1gbit_", ""), 15},
      {"namespaces_200mbit", cells("200mbit_", ""), 15},
      {"namespaces_1gbit_2ms", cells("1gbit_", "_2ms"), 15},
      {"namespaces_200mbit_2ms", cells("200mbit_", "_2ms"), 15},
  };
  const std::string folder = std::string(TUTTI_RESULTS) + "/";
  for (const auto& [name, results, most] : kFitted) {
    const auto links = find_links(folder + "model/links/" + name + ".json");
    ASSERT_TRUE(links.is_ok()) << links.status().to_string();
    std::vector<std::string> files;
    for (const std::string& file : results) files.push_back(folder + file + ".json");
    const auto algorithms = modelled_algorithms(Collective::kAllReduce, links->chunks);
    const auto calls =
        read_measured_calls(files, {.algorithms = algorithms, .chunks = links->chunks});
    ASSERT_TRUE(calls.is_ok()) << calls.status().to_string();
    const auto compared = compare(split_calls(*calls).held_out, *links, 1);
    ASSERT_TRUE(compared.is_ok()) << compared.status().to_string();
    const Errors errors = errors_of(*compared);
    EXPECT_GE(errors.calls, 30u) << name;
    EXPECT_LT(errors.median_percent, most) << name;
  }
}

}  // namespace
}  // namespace tutti::model
