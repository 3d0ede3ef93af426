#include "bench/overlap/command.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bench/outcome.hpp"
#include "bench/overlap/group.hpp"
#include "bench/overlap/print.hpp"
#include "bench/overlap/worker.hpp"
#include "machine.hpp"

namespace tutti::cli {
namespace {

std::string print(const Record& record, Format format) {
  if (format == Format::kJson) return to_json_text(record);
  return format == Format::kMarkdown ? print_overlap_markdown(record) : print_overlap_table(record);
}

// One line per row, with the first element of the first rank that saw something wrong.
void note_wrong(const OverlapOutcome& group, const std::vector<Row>& rows, Outcome& outcome) {
  for (std::size_t k = 0; k < rows.size(); ++k) {
    if (rows[k].wrong.value_or(0) == 0) continue;
    outcome.exit_code = kFailure;
    const auto& ranks = group.measurements;
    const auto first = std::find_if(ranks.begin(), ranks.end(), [&](const auto& rank) {
      return rank[k].wrong.value_or(0) > 0;
    });
    outcome.notes.push_back(fmt::format("WRONG RESULT with {} ranks, {}, {}: {} elements, first {}",
                                        group.ranks, rows[k].overlap->phase, rows[k].algorithm,
                                        *rows[k].wrong, (*first)[k].first_wrong));
  }
}

// One group after the other; the first that fails is the last.
void measure(const OverlapOptions& options, Outcome& outcome) {
  for (const int ranks : options.bench.ranks) {
    const auto group = measure_overlap(options, ranks);
    if (!group.is_ok()) return note_failure(ranks, group.status().to_string(), outcome);
    note_skipped(ranks, group->skipped, outcome);
    if (!note_end(ranks, group->end, outcome)) return;
    auto rows = rows_of(*group, options);
    if (!rows.is_ok()) return note_failure(ranks, rows.status().to_string(), outcome);
    note_wrong(*group, *rows, outcome);
    note_rows(*rows, outcome);
  }
  outcome.complete = true;
}

}  // namespace

int run_overlap(const OverlapArguments& arguments, const std::string& command_line) {
  const BenchMachine machine = bench_machine();
  const auto options = check_overlap_arguments(arguments, machine);
  if (!options.is_ok()) return report_usage(options.status(), machine, "bench overlap");
  const BenchOptions& bench = options->bench;
  if (bench.worker_fd >= 0) {
    return run_rank_process(bench.worker_fd, bench.communicator(), overlap_work(*options));
  }
  return run_campaign(
      bench, command_line, [&](Outcome& outcome) { measure(*options, outcome); },
      [](Format format, const Look&) {
        return print_at_the_end([format](const Record& record) { return print(record, format); });
      });
}

}  // namespace tutti::cli
