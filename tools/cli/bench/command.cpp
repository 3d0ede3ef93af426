#include "bench/command.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bench/calibration.hpp"
#include "bench/groups.hpp"
#include "bench/worker.hpp"
#include "machine.hpp"

namespace tutti::cli {
namespace {

std::vector<std::string> words_of(const BenchOptions& options, int ranks) {
  BenchOptions mine = options;
  mine.ranks = {ranks};
  std::vector<std::string> words = to_arguments(mine);
  words.insert(words.begin(), "bench");
  if (!options.trace.empty()) words.insert(words.end(), {"--trace", options.trace});
  return words;
}

void add_calibration(const BenchOptions& options, Outcome& outcome) {
  if (options.backend == Backend::kHost && outcome.exit_code <= kFailure) {
    const std::size_t largest = *std::max_element(options.bytes.begin(), options.bytes.end());
    if (largest > 0) outcome.record.environment.calibration = calibrate_host(largest);
    return;
  }
  CudaDriver* cuda = real_cuda();
  if (options.backend != Backend::kCuda || cuda == nullptr || outcome.exit_code > kFailure) return;
  const auto calibration = calibrate(*cuda);
  if (calibration.is_ok()) {
    outcome.record.environment.calibration = *calibration;
  } else {
    outcome.notes.push_back("no calibration: " + calibration.status().to_string());
  }
}

void add_repro(const BenchOptions& options, Outcome& outcome) {
  for (const Row& row : outcome.record.rows) {
    BenchOptions one = options;
    one.ranks = {row.ranks};
    one.bytes = {row.bytes};
    one.in_place = row.in_place;
    one.algorithms = {row.algorithm};
    outcome.repro.push_back(fmt::format("tutti bench {}", fmt::join(to_arguments(one), " ")));
  }
}

void measure(const BenchOptions& options, Outcome& outcome) {
  const auto words = [&](int ranks) { return words_of(options, ranks); };
  measure_groups(options, {.words = words, .work = bench_work(options), .describe = {}}, outcome);
  if (!options.speaks) return;
  add_calibration(options, outcome);
  if (options.repro) add_repro(options, outcome);
}

}  // namespace

int run_bench(const BenchArguments& arguments, const std::string& command_line) {
  const BenchMachine machine = bench_machine();
  const auto options = check_arguments(arguments, machine);
  if (!options.is_ok()) return report_usage(options.status(), machine);
  if (options->worker_fd >= 0) {
    return run_rank_process(options->worker_fd, options->communicator(), bench_work(*options));
  }
  return run_campaign(
      *options, command_line, [&](Outcome& outcome) { measure(*options, outcome); },
      [&](Format format, const Look& look) { return make_printer(format, *options, look); });
}

}  // namespace tutti::cli
