// The times of simulate() are those that SimGrid finds for the very same programs.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/catalogue.hpp"
#include "model/simulate.hpp"
#include "simgrid/reference_cluster.hpp"

namespace tutti::model {
namespace {

constexpr double kTolerance = 0.01;

struct Case {
  std::string_view algorithm;
  test::ReferenceRun run;
  std::string text() const {
    return std::string(algorithm) + ", " + std::to_string(run.ranks) + " ranks, " +
           std::to_string(run.count) + " elements";
  }
};

// Either the delay or the rate takes most of the time, and all messages at a port end together:
// otherwise SimGrid shares a port among messages that the simulation sends one after another.
std::vector<Case> cases() {
  std::vector<Case> made;
  const auto add = [&](std::string_view algorithm, std::initializer_list<int> sizes) {
    const NetworkSchedule schedule = (*find_algorithm(Collective::kAllReduce, algorithm))->network;
    for (const int ranks : sizes) {
      made.push_back({algorithm, {schedule, ranks, 8192, 1e9, 1e-3}});
      made.push_back({algorithm, {schedule, ranks, std::size_t{1} << 22, 1e9, 1e-6}});
    }
  };
  add("network_ring", {3, 8, 128});
  add("network_ring_bidirectional", {3, 8, 64});
  add("network_direct", {3, 8, 24});
  add("network_doubling", {2, 8, 64});
  return made;
}

// Relative to SimGrid's; `rate` and `delay` are made that many times as great.
double difference(const Case& compared, double seconds, double rate = 1, double delay = 1) {
  ClusterModel cluster;
  cluster.nodes = compared.run.ranks;
  cluster.between = {.gbit_per_s = rate * compared.run.bytes_per_s * 8 / 1e9,
                     .delay_us = delay * compared.run.delay_s * 1e6};
  const std::size_t bytes = compared.run.count * 4;
  const Result<SimulatedTime> time =
      simulate({.schedule = compared.run.schedule,
                .count = compared.run.count,
                .chunk_bytes = bytes,
                .most_scratch_bytes = 2 * bytes * static_cast<std::size_t>(compared.run.ranks)},
               cluster);
  EXPECT_TRUE(time.is_ok()) << time.status().message();
  return time.is_ok() ? time->us / (seconds * 1e6) - 1 : INFINITY;
}

TEST(SimGrid, FindsTheSameTimes) {
  const std::vector<Case> all = cases();
  std::vector<test::ReferenceRun> runs;
  for (const Case& compared : all) runs.push_back(compared.run);
  const std::vector<double> seconds = test::seconds_on_simgrid(runs);
  for (std::size_t k = 0; k < all.size(); ++k) {
    EXPECT_LT(std::abs(difference(all[k], seconds[k])), kTolerance) << all[k].text();
    // What is compared depends on both: a wrong one is found.
    const bool by_delay = all[k].run.delay_s > 1e-4;
    const double wrong =
        by_delay ? difference(all[k], seconds[k], 1, 1.1) : difference(all[k], seconds[k], 0.5, 1);
    EXPECT_GT(wrong, kTolerance) << all[k].text();
  }
}

}  // namespace
}  // namespace tutti::model
