// tutti_gpu_tests: what a group of ranks on GPUs must be able to do, and how it must fail. Every
// test runs in a process of its own, with its own time limit, unless --together.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <utility>

#include "conformance/gpu/gpu_tests.hpp"
#include "drivers/cuda.hpp"
#include "drivers/nccl.hpp"
#include "support/check.hpp"
#include "support/device.hpp"
#include "topology/topology.hpp"

namespace tutti::test {
namespace {

constexpr int kSkipped = 77;  // ctest's SKIP_RETURN_CODE

struct Options {
  std::vector<int> ranks;
  std::vector<std::string> kinds = {"threads", "processes"};
  std::string filter;
  int limit_s = 120;  // of one test
  bool together = false, list = false;

  bool wants(RankKind kind) const {
    return std::find(kinds.begin(), kinds.end(), to_string(kind)) != kinds.end();
  }
};

// A scenario of ranks of one kind, or a test that makes its ranks itself.
struct Test {
  std::string name;  // "thousand_replays/2/threads"
  GroupSpec spec;
  std::function<void(Rank&)> scenario = {};
  std::string (*whole)(int ranks) = nullptr;

  std::string run() const { return scenario ? run_group(spec, scenario) : whole(spec.ranks); }
};

// Why ranks cannot use NCCL, or one of this `version`; empty if they can.
std::string why_no_nccl(int version, int ranks) {
  return run_isolated(
      [version, ranks] {
        require(take(real_cuda()->device_count()) >= ranks, "NCCL refuses ranks that share a GPU");
        std::string why;
        NcclDriver* const nccl = real_nccl(&why);
        require(nccl != nullptr, why);
        require(nccl->version_number() >= version, "NCCL is " + take(nccl->version()));
      },
      std::chrono::seconds(60));
}

// The numbers of ranks that this machine has GPUs for.
std::vector<int> possible_ranks(const std::vector<int>& wanted) {
  std::vector<int> ranks;
  if (!wanted.empty()) {
    for (const int n : wanted) {
      if (has_gpus(n)) ranks.push_back(n);
    }
    return ranks;
  }
  int most = 0;
  for (const int n : {1, 2, 4, 8}) most = has_gpus(n) ? n : most;
  for (const int n : {2, most}) {
    if (n <= most && (ranks.empty() || ranks.back() != n)) ranks.push_back(n);
  }
  return ranks;
}

void add(std::vector<Test>& tests, const Scenario& scenario, RankKind kind, int ranks) {
  if (ranks < scenario.min_ranks) return;
  const GroupSpec spec{.backend = Backend::kCuda,
                       .kind = kind,
                       .ranks = ranks,
                       .timeout = std::min(scenario.timeout, std::chrono::milliseconds(10000)),
                       .limit = std::chrono::hours(1)};
  tests.push_back(
      {fmt::format("{}/{}/{}", scenario.name, ranks, to_string(kind)), spec, scenario.run});
}

// NCCL's, as far as `ranks` can use it. Says what is left out.
void add_nccl(std::vector<std::span<const Scenario>>& lists, int ranks) {
  const auto add_from = [&](const char* names, int version, std::span<const Scenario> list) {
    const std::string why = why_no_nccl(version, ranks);
    if (why.empty()) lists.push_back(list);
    if (!why.empty()) fmt::print("skipped {} of {} ranks: {}\n", names, ranks, why);
  };
  add_from("nccl_*", 0, nccl_failures());
  add_from("nccl_window_*", kFirstNcclWithWindows, nccl_windows());
  add_from("waits in nccl_window", kFirstNcclThatAbortsThem, nccl_window_waits());
}

std::vector<Test> all_tests(const Options& options, const std::vector<int>& ranks) {
  std::vector<Test> tests;
  for (const int n : ranks) {
    std::vector<std::span<const Scenario>> lists = {working_scenarios(),
                                                    failing_scenarios(),
                                                    leaving_scenarios(),
                                                    graph_scenarios(),
                                                    capture_failures(),
                                                    surroundings(),
                                                    protocol_controls(),
                                                    one_sided(),
                                                    stream_barriers(),
                                                    all_gather_matmuls(),
                                                    fused()};
    add_nccl(lists, n);
    for (const auto list : lists) {
      for (const Scenario& scenario : list) {
        for (const RankKind kind : {RankKind::kThreads, RankKind::kProcesses}) {
          if (options.wants(kind)) add(tests, scenario, kind, n);
        }
      }
    }
    if (!options.wants(RankKind::kProcesses)) continue;  // of what follows, some forks
    for (const auto list :
         {whole_tests(), settings_of_cuda(), staged_network(), direct_network()}) {
      for (const WholeTest& whole : list) {
        tests.push_back({fmt::format("{}/{}", whole.name, n), {.ranks = n}, {}, whole.run});
      }
    }
  }
  std::erase_if(
      tests, [&](const Test& test) { return test.name.find(options.filter) == std::string::npos; });
  return tests;
}

bool run_one(const Test& test, int limit_s) {
  const auto start = std::chrono::steady_clock::now();
  const std::string text = run_isolated(
      [&] {
        const std::string failures = test.run();
        if (!failures.empty()) throw Failure(failures);
      },
      std::chrono::seconds(limit_s));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  fmt::print("{} {} ({:.1f} s){}{}\n", text.empty() ? "passed" : "FAILED", test.name, took.count(),
             text.empty() ? "" : "\n   ", text);
  std::fflush(stdout);
  return text.empty();
}

struct Totals {
  int passed = 0, failed = 0;
};

void run_each(const std::vector<Test>& tests, const Options& options, Totals& totals) {
  for (const Test& test : tests) {
    ++(run_one(test, options.limit_s) ? totals.passed : totals.failed);
  }
}

// Those from the first on that `failures` names; all if it names none.
std::vector<Test> not_passed(const std::vector<Test>& tests, const std::string& failures) {
  const auto first = std::find_if(tests.begin(), tests.end(), [&](const Test& test) {
    return failures.find(test.name + ":") != std::string::npos;
  });
  return {first == tests.end() ? tests.begin() : first, tests.end()};
}

// Scenarios of one kind and number of ranks, one after the other in the same ranks: starting CUDA
// takes most of a test's time. From one that fails on, each is run by itself.
void run_together(const std::vector<Test>& tests, const Options& options, Totals& totals) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<NamedRun> series;
  for (const Test& test : tests) series.push_back({test.name, test.spec, test.scenario});
  const auto run_all = [&] {
    const std::string failures = run_series(series);
    if (!failures.empty()) throw Failure(failures);
  };
  const auto limit = std::chrono::seconds(options.limit_s + 2 * static_cast<int>(tests.size()));
  const std::string text = run_isolated(run_all, limit);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  const std::string what =
      fmt::format("{} scenarios of {} {}", tests.size(), tests.front().spec.ranks,
                  to_string(tests.front().spec.kind));
  if (text.empty()) {
    totals.passed += static_cast<int>(tests.size());
    fmt::print("passed {} ({:.1f} s)\n", what, took.count());
  } else {
    const std::vector<Test> left = not_passed(tests, text);
    totals.passed += static_cast<int>(tests.size() - left.size());
    fmt::print("{} together ({:.1f} s): {}\nfrom there on each by itself\n", what, took.count(),
               text);
    run_each(left, options, totals);
  }
  std::fflush(stdout);
}

// Takes the scenarios out of `tests`.
void run_all_together(std::vector<Test>& tests, const Options& options, Totals& totals) {
  std::map<std::pair<RankKind, int>, std::vector<Test>> groups;
  for (const Test& test : tests) {
    if (test.scenario) groups[{test.spec.kind, test.spec.ranks}].push_back(test);
  }
  std::erase_if(tests, [](const Test& test) { return bool(test.scenario); });
  for (const auto& [group, scenarios] : groups) run_together(scenarios, options, totals);
}

int run(const Options& options) {
  const std::string why = run_isolated([] { require(why_no_gpus(1).empty(), why_no_gpus(1)); },
                                       std::chrono::seconds(60));
  if (!why.empty()) {
    fmt::print("skipped: {}\n0 passed, 0 failed\n", why);
    return kSkipped;
  }
  std::vector<Test> tests = all_tests(options, possible_ranks(options.ranks));
  if (options.list) {
    for (const Test& test : tests) fmt::print("{}\n", test.name);
    return 0;
  }
  Totals totals;
  if (options.together) run_all_together(tests, options, totals);
  run_each(tests, options, totals);
  fmt::print("{} passed, {} failed\n", totals.passed, totals.failed);
  return totals.failed > 0 || totals.passed == 0 ? 1 : 0;
}

}  // namespace
}  // namespace tutti::test

int main(int argc, char** argv) {
  ::setenv("TUTTI_DEBUG", "OFF", 0);
  tutti::test::Options options;
  CLI::App app("Tests of groups of ranks on GPUs");
  app.add_option("--ranks", options.ranks, "numbers of ranks; default: 2 and all GPUs")
      ->delimiter(',');
  app.add_option("--kind", options.kinds, "threads,processes")->delimiter(',');
  app.add_option("--filter", options.filter, "only tests whose name holds this text");
  app.add_option("--limit", options.limit_s, "seconds for one test");
  app.add_flag("--together", options.together,
               "scenarios run one after the other in the same ranks, as long as they pass");
  app.add_flag("--list", options.list, "print the names and run nothing");
  CLI11_PARSE(app, argc, argv);
  try {
    return tutti::test::run(options);
  } catch (const std::exception& failure) {
    fmt::print(stderr, "{}\n", failure.what());
    return 2;
  }
}
