#include "bench/one_sided/command.hpp"

#include <fmt/core.h>

#include "bench/groups.hpp"
#include "bench/one_sided/worker.hpp"
#include "machine.hpp"

namespace tutti::cli {
namespace {

GroupWork work_of(const OneSidedOptions& options) {
  const auto words = [&options](int ranks) {
    OneSidedOptions mine = options;
    mine.bench.ranks = {ranks};
    return to_arguments(mine);
  };
  // Of one rank: what it sends, or fetches; all of that crosses its link.
  const auto describe = [&options](Row& row) {
    row.collective = to_string(options.kind);
    row.busbw_gbps = row.algbw_gbps;
  };
  return {.words = words, .work = one_sided_work(options), .describe = describe};
}

}  // namespace

int run_one_sided_bench(const OneSidedArguments& arguments, const std::string& command_line) {
  const BenchMachine machine = bench_machine();
  const auto options = check_one_sided_arguments(arguments, machine);
  if (!options.is_ok()) {
    return report_usage(options.status(), machine,
                        fmt::format("bench {}", to_string(arguments.kind)));
  }
  const BenchOptions& bench = options->bench;
  if (bench.worker_fd >= 0) {
    return run_rank_process(bench.worker_fd, bench.communicator(), one_sided_work(*options));
  }
  return run_campaign(
      bench, command_line,
      [&](Outcome& outcome) { measure_groups(bench, work_of(*options), outcome); },
      [&](Format format, const Look& look) { return make_printer(format, bench, look); });
}

}  // namespace tutti::cli
