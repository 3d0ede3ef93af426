#include "bench/command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "bench/calibration.hpp"
#include "bench/group.hpp"
#include "bench/outcome.hpp"
#include "bench/printers/printers.hpp"
#include "bench/progress.hpp"
#include "bench/worker.hpp"
#include "machine.hpp"

namespace tutti::cli {
namespace {

std::string print(const Record& record, const BenchOptions& options, Format format) {
  switch (format) {
    case Format::kMarkdown:
      return print_markdown(record);
    case Format::kCsv:
      return print_csv(record);
    case Format::kJson:
      return to_json_text(record);
    default:
      return print_table(record, options.algorithms);
  }
}

// One group after the other; the first that fails is the last.
void run_groups(const BenchOptions& options, Outcome& outcome) {
  for (const int ranks : options.ranks) {
    Progress progress(options, stderr);
    const auto group = measure_group(
        options, ranks, [&](const Measurement& measurement) { progress.show(ranks, measurement); });
    if (!group.is_ok()) return note_failure(ranks, group.status().to_string(), outcome);
    note_skipped(ranks, group->skipped, outcome);
    outcome.traced.push_back(group->operations);
    if (!note_end(ranks, group->end, outcome)) return;
    auto rows = rows_of(*group, options);
    if (!rows.is_ok()) return note_failure(ranks, rows.status().to_string(), outcome);
    note_wrong(*group, *rows, outcome);
    outcome.record.rows.insert(outcome.record.rows.end(), rows->begin(), rows->end());
  }
  outcome.complete = true;
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
    one.choice = Choice::kNamed;
    one.algorithms = {row.algorithm};
    outcome.repro.push_back(fmt::format("tutti bench {}", fmt::join(to_arguments(one), " ")));
  }
}

void measure(const BenchOptions& options, Outcome& outcome) {
  run_groups(options, outcome);
  add_calibration(options, outcome);
  if (options.repro) add_repro(options, outcome);
}

}  // namespace

int run_bench(const BenchArguments& arguments, const std::string& command_line) {
  const auto options = check_arguments(arguments, bench_machine());
  if (!options.is_ok()) return report_usage(options.status());
  if (options->worker_fd >= 0) {
    return run_rank_process(options->worker_fd, options->communicator(), bench_work(*options));
  }
  return run_campaign(
      *options, command_line, [&](Outcome& outcome) { measure(*options, outcome); },
      [&](const Record& record, Format format) { return print(record, *options, format); });
}

}  // namespace tutti::cli
