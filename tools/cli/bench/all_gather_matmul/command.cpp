#include "bench/all_gather_matmul/command.hpp"

#include <fmt/core.h>

#include "base/try.hpp"
#include "bench/all_gather_matmul/measure.hpp"
#include "bench/all_gather_matmul/print.hpp"
#include "bench/all_gather_matmul/ranks/command.hpp"
#include "bench/matmul/command.hpp"
#include "bench/matmul/print.hpp"
#include "machine.hpp"

namespace tutti::cli {
namespace {

// The first setting that fails is the last.
Status measure_gated_settings(const AllGatherMatmulOptions& options, Outcome& outcome) {
  CudaDriver* const cuda = real_cuda();
  if (cuda == nullptr) return {StatusCode::kUnavailable, "there is no GPU here"};
  // Streams write flags with values that a graph would repeat.
  const MatmulLaunch launch{.calls = options.arrival == ArrivalKind::kHost ? options.calls : 0};
  TUTTI_ASSIGN(const auto device, make_cuda_matmul_device(*cuda, real_nvml(), launch));
  for (const MatmulSetting& setting : settings_of(options.matmul)) {
    for (const std::string& tile : options.matmul.tiles) {
      const GatedPlace place{.cuda = *cuda, .device = *device, .kernels = {}};
      const auto measured = measure_gated(place, options, setting, tile);
      if (!measured.is_ok()) {
        const auto& [m, n, k] = setting.extents;
        return measured.status().with_context(fmt::format("m {}, n {}, k {}", m, n, k));
      }
      note_matmul(*measured, outcome);
    }
  }
  return Status::ok();
}

}  // namespace

int run_all_gather_matmul_bench(const AllGatherMatmulArguments& arguments,
                                const std::string& command_line) {
  const BenchMachine machine = bench_machine();
  if (has_ranks(arguments, machine)) {
    return run_gather_matmul_bench(arguments, machine, command_line);
  }
  const auto options = check_all_gather_matmul_arguments(arguments, machine);
  if (!options.is_ok()) return report_usage(options.status(), machine, "bench all_gather_matmul");
  const BenchOptions& bench = options->matmul.bench;
  return run_campaign(
      bench, command_line,
      [&](Outcome& outcome) {
        note_matmul_end(measure_gated_settings(*options, outcome), outcome);
      },
      [&](Format format, const Look& look) {
        if (format == Format::kTable) return make_gated_table_printer(look);
        if (format == Format::kCsv) return make_csv_printer(CsvColumns::kArrivals);
        if (format == Format::kMarkdown) return print_at_the_end(print_matmul_markdown);
        return make_printer(format, bench, look);
      });
}

}  // namespace tutti::cli
