// What a group must be able to do and how it must fail, with ranks as threads and as processes.
#include "conformance/scenarios.hpp"

#include <gtest/gtest.h>

#include "support/sanitizers.hpp"

namespace tutti::test {
namespace {

struct Setting {
  Scenario scenario;
  RankKind kind;
  int ranks;

  std::string name() const {
    return std::string(scenario.name) + "_" + std::to_string(ranks) + "_" +
           std::string(to_string(kind));
  }
  friend void PrintTo(const Setting& setting, std::ostream* out) { *out << setting.name(); }
};

class ScenarioTest : public ::testing::TestWithParam<Setting> {};

TEST_P(ScenarioTest, Host) {
  const Setting& run = GetParam();
  const GroupSpec spec{.kind = run.kind, .ranks = run.ranks, .timeout = run.scenario.timeout};
  EXPECT_EQ(run_group(spec, run.scenario.run), "");
}

// Where groups of four run once. Sanitizers see more of threads.
constexpr RankKind kKindOfFour = kSanitizer ? RankKind::kThreads : RankKind::kProcesses;

std::vector<Setting> all_runs() {
  std::vector<Setting> runs;
  for (const auto scenarios : {working_scenarios(), failing_scenarios(), leaving_scenarios()}) {
    for (const Scenario& scenario : scenarios) {
      for (const RankKind kind : {RankKind::kThreads, RankKind::kProcesses}) {
        // ThreadSanitizer sees nothing between processes.
        if (kThreadSanitizer && kind == RankKind::kProcesses) continue;
        for (const int ranks : {scenario.min_ranks, 4}) {
          // How it passes differs between groups of two and of more, and not between the kinds.
          const bool once = kSanitizer || scenario.outlasts_a_deadline;
          const bool again = once && ranks == 4 && kind != kKindOfFour;
          if (!again) runs.push_back({scenario, kind, ranks});
        }
      }
    }
  }
  return runs;
}

INSTANTIATE_TEST_SUITE_P(All, ScenarioTest, ::testing::ValuesIn(all_runs()),
                         [](const auto& tested) { return tested.param.name(); });

TEST(GroupTest, OneThreadDrivesAllRanks) {
  for (const int ranks : {1, 2, 5}) EXPECT_EQ(drive_all_ranks(Backend::kHost, ranks), "");
}

}  // namespace
}  // namespace tutti::test
