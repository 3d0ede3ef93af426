#include "bench/all_gather_matmul/ranks/command.hpp"

#include <fmt/format.h>

#include "bench/all_gather_matmul/ranks/group.hpp"
#include "bench/all_gather_matmul/ranks/print.hpp"
#include "bench/all_gather_matmul/ranks/worker.hpp"
#include "bench/matmul/print.hpp"
#include "bench/outcome.hpp"

namespace tutti::cli {
namespace {

// One line per row, with the first element of the first rank that saw something wrong.
void note_wrong_products(const GatherMatmulOutcome& setting, Outcome& outcome) {
  const std::size_t rows = setting.ranks.front().size();
  for (std::size_t k = 0; k < rows; ++k) {
    for (const auto& rank : setting.ranks) {
      if (rank[k].first_wrong.empty()) continue;
      outcome.exit_code = kFailure;
      outcome.notes.push_back(rank[k].first_wrong);
      break;
    }
  }
}

// One group after the other; the first that fails is the last.
void measure_groups_of(const GatherMatmulOptions& options, Outcome& outcome) {
  for (const int ranks : options.matmul.bench.ranks) {
    bool failed = false;
    const auto on_setting = [&](const GatherMatmulOutcome& setting) {
      const auto rows = rows_of(setting, options);
      if (!rows.is_ok()) {
        failed = true;
        return note_failure(ranks, rows.status().to_string(), outcome);
      }
      note_wrong_products(setting, outcome);
      note_rows(*rows, outcome);
    };
    const auto end = measure_gather_matmuls(options, ranks, on_setting);
    if (!end.is_ok()) return note_failure(ranks, end.status().to_string(), outcome);
    note_skipped(ranks, end->skipped, outcome);
    if (!note_end(ranks, end->end, outcome) || failed) return;
  }
  outcome.complete = true;
}

}  // namespace

int run_gather_matmul_bench(const AllGatherMatmulArguments& arguments, const BenchMachine& machine,
                            const std::string& command_line) {
  const auto options = check_gather_matmul_arguments(arguments, machine);
  if (!options.is_ok()) return report_usage(options.status(), machine, "bench all_gather_matmul");
  const BenchOptions& bench = options->matmul.bench;
  if (bench.worker_fd >= 0) {
    return run_rank_process(bench.worker_fd, bench.communicator(), gather_matmul_work(*options));
  }
  return run_campaign(
      bench, command_line, [&](Outcome& outcome) { measure_groups_of(*options, outcome); },
      [&](Format format, const Look& look) {
        if (format == Format::kTable) return make_gathered_table_printer(look);
        if (format == Format::kCsv) return make_csv_printer(CsvColumns::kGathered);
        if (format == Format::kMarkdown) return print_at_the_end(print_matmul_markdown);
        return make_printer(format, bench, look);
      });
}

}  // namespace tutti::cli
