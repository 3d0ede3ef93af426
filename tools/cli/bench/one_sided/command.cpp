#include "bench/one_sided/command.hpp"

#include <fmt/core.h>

#include "base/try.hpp"
#include "bench/group.hpp"
#include "bench/launcher.hpp"
#include "bench/one_sided/worker.hpp"
#include "bench/outcome.hpp"
#include "bench/printers/printers.hpp"
#include "machine.hpp"

namespace tutti::cli {
namespace {

std::string print(const Record& record, const OneSidedOptions& options, Format format) {
  switch (format) {
    case Format::kMarkdown:
      return print_markdown(record);
    case Format::kCsv:
      return print_csv(record);
    case Format::kJson:
      return to_json_text(record);
    default:
      return print_table(record, options.bench.algorithms);
  }
}

Result<GroupOutcome> measure_group(const OneSidedOptions& options, int ranks) {
  GroupOutcome outcome{.ranks = ranks};
  outcome.measurements.resize(static_cast<std::size_t>(ranks));
  OneSidedOptions mine = options;
  mine.bench.ranks = {ranks};
  const auto take = [&](int rank, const Report& report) {
    if (const auto* measurement = std::get_if<Measurement>(&report)) {
      outcome.measurements[static_cast<std::size_t>(rank)].push_back(*measurement);
    }
  };
  TUTTI_ASSIGN(outcome.end, run_group({.ranks = ranks,
                                       .launch = options.bench.launch,
                                       .options = options.bench.communicator(),
                                       .words = to_arguments(mine),
                                       .work = one_sided_work(options)},
                                      take));
  return outcome;
}

// Of one rank: what it sends, or fetches; all of that crosses its link.
Result<std::vector<Row>> rows_of(const GroupOutcome& group, const OneSidedOptions& options) {
  TUTTI_ASSIGN(std::vector<Row> rows, rows_of(group, options.bench));
  for (Row& row : rows) {
    row.collective = to_string(options.kind);
    row.busbw_gbps = row.algbw_gbps;
  }
  return rows;
}

// One group after the other; the first that fails is the last.
void measure(const OneSidedOptions& options, Outcome& outcome) {
  for (const int ranks : options.bench.ranks) {
    const auto group = measure_group(options, ranks);
    if (!group.is_ok()) return note_failure(ranks, group.status().to_string(), outcome);
    if (!note_end(ranks, group->end, outcome)) return;
    auto rows = rows_of(*group, options);
    if (!rows.is_ok()) return note_failure(ranks, rows.status().to_string(), outcome);
    note_wrong(*group, *rows, outcome);
    outcome.record.rows.insert(outcome.record.rows.end(), rows->begin(), rows->end());
  }
  outcome.complete = true;
}

}  // namespace

int run_one_sided_bench(const OneSidedArguments& arguments, const std::string& command_line) {
  const auto options = check_one_sided_arguments(arguments, bench_machine());
  if (!options.is_ok()) {
    return report_usage(options.status(), fmt::format("bench {}", to_string(arguments.kind)));
  }
  const BenchOptions& bench = options->bench;
  if (bench.worker_fd >= 0) {
    return run_rank_process(bench.worker_fd, bench.communicator(), one_sided_work(*options));
  }
  return run_campaign(
      bench, command_line, [&](Outcome& outcome) { measure(*options, outcome); },
      [&](const Record& record, Format format) { return print(record, *options, format); });
}

}  // namespace tutti::cli
