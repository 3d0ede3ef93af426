#include "tune/command.hpp"

#include "base/knobs.hpp"
#include "bench/rank.hpp"
#include "exit_code.hpp"
#include "machine.hpp"
#include "tell.hpp"
#include "tune/sweep.hpp"
#include "tune/table_file.hpp"
#include "tune/worker.hpp"

namespace tutti::cli {
namespace {

int report_usage(const Status& status) {
  tell_line(stderr, "tutti tune: {}", status.message());
  return kUsage;
}

}  // namespace

int run_tune(const TuneArguments& arguments, const std::string& command_line) {
  const auto options =
      check_tune_arguments(arguments, bench_machine(), Knobs::process().path("TUTTI_TUNING_CACHE"));
  if (!options.is_ok()) return report_usage(options.status());
  const BenchOptions& bench = options->bench;
  if (bench.worker_fd >= 0) {
    return run_rank_process(bench.worker_fd, bench.communicator(), tune_work(*options));
  }
  const auto table = read_table(bench.output);
  if (!table.is_ok()) return report_usage(table.status());
  const Environment environment = describe_environment(bench.backend, command_line);
  return Sweep(*options, environment, table->collectives).run();
}

}  // namespace tutti::cli
