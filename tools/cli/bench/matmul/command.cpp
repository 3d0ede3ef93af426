#include "bench/matmul/command.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "base/try.hpp"
#include "bench/matmul/measure.hpp"
#include "bench/matmul/print.hpp"
#include "bench/outcome.hpp"
#include "machine.hpp"

namespace tutti::cli {
namespace {

// The first setting that fails is the last.
Status measure_settings(const MatmulBenchOptions& options, Outcome& outcome) {
  CudaDriver* const cuda = options.bench.backend == Backend::kCuda ? real_cuda() : nullptr;
  std::unique_ptr<MatmulDevice> device = make_host_matmul_device();
  if (cuda != nullptr) {
    TUTTI_ASSIGN(device, make_cuda_matmul_device(*cuda, real_nvml()));
  }
  for (const MatmulSetting& setting : settings_of(options)) {
    const auto measured = measure_matmul(*device, cuda, options, setting);
    if (!measured.is_ok()) {
      const auto& [m, n, k] = setting.extents;
      return measured.status().with_context(fmt::format("m {}, n {}, k {}", m, n, k));
    }
    note_matmul(*measured, outcome);
  }
  return Status::ok();
}

}  // namespace

std::vector<MatmulSetting> settings_of(const MatmulBenchOptions& options) {
  std::vector<MatmulSetting> settings;
  for (const DataType dtype : options.dtypes) {
    for (const MatrixLayout layout : options.layouts) {
      for (const MatmulExtents& extents : options.shapes) {
        settings.push_back({.extents = extents,
                            .dtype = dtype,
                            .layout = layout,
                            .products = options.products,
                            .bias = options.bias,
                            .check = options.bench.check});
      }
    }
  }
  return settings;
}

void note_matmul(const MeasuredMatmul& measured, Outcome& outcome) {
  for (const Skipped& each : measured.skipped) {
    const std::string note = fmt::format("{}: {}", each.algorithm, each.why);
    if (std::ranges::count(outcome.notes, note) == 0) outcome.notes.push_back(note);
  }
  for (const std::string& wrong : measured.wrong) {
    outcome.notes.push_back(wrong);
    outcome.exit_code = kFailure;
  }
  note_rows(measured.rows, outcome);
}

void note_matmul_end(const Status& status, Outcome& outcome) {
  outcome.complete = status.is_ok();
  if (status.is_ok()) return;
  outcome.notes.push_back("FAILED: " + status.to_string());
  outcome.exit_code = kFailure;
}

int run_matmul_bench(const MatmulArguments& arguments, const std::string& command_line) {
  const BenchMachine machine = bench_machine();
  const auto options = check_matmul_arguments(arguments, machine);
  if (!options.is_ok()) return report_usage(options.status(), machine, "bench matmul");
  return run_campaign(
      options->bench, command_line,
      [&](Outcome& outcome) { note_matmul_end(measure_settings(*options, outcome), outcome); },
      [&](Format format, const Look& look) {
        if (format == Format::kTable) return make_matmul_table_printer(look);
        if (format == Format::kCsv) return make_csv_printer(CsvColumns::kMatmuls);
        if (format == Format::kMarkdown) return print_at_the_end(print_matmul_markdown);
        return make_printer(format, options->bench, look);
      });
}

}  // namespace tutti::cli
