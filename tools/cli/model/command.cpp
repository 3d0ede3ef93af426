#include "model/command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "bench/printers/printers.hpp"
#include "commit.hpp"
#include "exit_code.hpp"
#include "machine.hpp"
#include "model/fit.hpp"
#include "model/measured.hpp"
#include "model/sweep.hpp"
#include "output_file.hpp"
#include "tell.hpp"
#include "tutti/version.hpp"

namespace tutti::cli {
namespace {

int tell_model_failure(const Status& status, int exit_code) {
  tell_line(stderr, "tutti model: {}", status.message());
  return exit_code;
}

int write_model_output(const std::string& path, const std::string& text) {
  const Status written = write_file_atomically(path, text);
  return written.is_ok() ? kSuccess : tell_model_failure(written, kFailure);
}

std::string text_of(const model::Errors& errors) {
  return fmt::format("{} results, error of the median {:.1f} %, at most {:.1f} %", errors.calls,
                     errors.median_percent, errors.most_percent);
}

void tell_compared(std::span<const model::ComparedCall> calls) {
  constexpr std::string_view kTitle = "algorithm";
  std::size_t width = kTitle.size();
  for (const auto& call : calls) width = std::max(width, call.measured.algorithm.size());
  tell(stdout, "{:{}}{:>7}{:>12}{:>13}{:>13}{:>9}\n", kTitle, width, "ranks", "bytes",
       "measured us", "modelled us", "error %");
  for (const auto& [measured, modelled_us] : calls) {
    const model::ComparedCall call{measured, modelled_us};
    tell(stdout, "{:{}}{:>7}{:>12}{:>13}{:>13}{:>+9.1f}\n", measured.algorithm, width,
         measured.ranks, measured.call.bytes, time_text(measured.us), time_text(modelled_us),
         call.error_percent());
  }
}

model::MeasuredFilter filter_of(const ModelOptions& options) {
  return {options.collective, options.algorithms, options.links.chunks, options.ranks_per_node};
}

// What delays and processors decide, and what rates do, have errors of their own.
void tell_held_out(std::span<const model::ComparedCall> calls) {
  constexpr std::size_t kSmall = 64 * KiB;
  std::vector<model::ComparedCall> sorted(calls.begin(), calls.end());
  const auto large = std::stable_partition(sorted.begin(), sorted.end(), [](const auto& call) {
    return call.measured.call.bytes <= kSmall;
  });
  const auto small = static_cast<std::size_t>(large - sorted.begin());
  const std::span<const model::ComparedCall> all(sorted);
  tell_line(stdout, "  up to {}: {}", format_bytes(kSmall),
            text_of(model::errors_of(all.first(small))));
  tell_line(stdout, "  larger: {}", text_of(model::errors_of(all.subspan(small))));
}

int compare_with_results(const ModelOptions& options) {
  const auto calls = model::read_measured_calls(options.compare, filter_of(options));
  if (!calls.is_ok()) return tell_model_failure(calls.status(), kUsage);
  const auto compared =
      model::compare(*calls, options.links, options.ranks_per_node, options.folding);
  if (!compared.is_ok()) return tell_model_failure(compared.status(), kFailure);
  tell_compared(*compared);
  tell_line(stdout, "{}: {}", options.links.cluster.name, text_of(model::errors_of(*compared)));
  return kSuccess;
}

int fit_to_results(const ModelOptions& options, const std::string& command_line) {
  const auto calls = model::read_measured_calls(options.fit, filter_of(options));
  if (!calls.is_ok()) return tell_model_failure(calls.status(), kUsage);
  auto fitted = model::fit(*calls, options.links, options.ranks_per_node);
  if (!fitted.is_ok()) return tell_model_failure(fitted.status(), kUsage);
  tell_compared(fitted->held_out_calls);
  const std::string held_out = text_of(fitted->held_out);
  tell_line(stdout, "fitted to: {}", text_of(fitted->fitted));
  tell_line(stdout, "held out: {}", held_out);
  tell_held_out(fitted->held_out_calls);
  if (!options.output.empty()) {
    fitted->links.cluster.name = std::filesystem::path(options.output).stem().string();
  }
  fitted->links.source = fmt::format("{}; held out: {}", command_line, held_out);
  const std::string text = to_json_text(fitted->links);
  if (options.output.empty()) {
    tell(stdout, "{}", text);
    return kSuccess;
  }
  return write_model_output(options.output, text);
}

Record empty_record(const ModelOptions& options, const std::string& command_line) {
  Record record{.tutti = std::string(version()),
                .commit = commit(),
                .environment = describe_environment(Backend::kHost, command_line)};
  record.environment.host.clear();  // it computes, and is not what is timed
  model::Links links = options.links;
  links.cluster.ranks_per_node = options.ranks_per_node;
  record.environment.link = to_json_line(links);
  return record;
}

int simulate_all(const ModelOptions& options, const std::string& command_line) {
  Record record = empty_record(options, command_line);
  std::vector<std::string> notes;
  tell(stdout, "{}", heading_of(options));
  for (const int nodes : options.nodes) {
    for (const std::size_t bytes : options.bytes) {
      const ModelledLine line = simulate_line(options, nodes, bytes);
      tell(stdout, "{}", text_of(options, line));
      (void)std::fflush(stdout);  // the next one may take long
      for (Row& row : rows_of(options, line)) record.rows.push_back(std::move(row));
      for (std::size_t i = 0; i < line.us.size(); ++i) {
        if (line.us[i]) continue;
        std::string note = fmt::format("- {} with --nodes {}: {}", options.algorithms[i].name,
                                       nodes, line.why_not[i]);
        if (std::ranges::count(notes, note) == 0) notes.push_back(std::move(note));
      }
    }
  }
  for (const std::string& note : notes) tell_line(stdout, "{}", note);
  const int exit_code = record.rows.empty() ? kFailure : kSuccess;
  if (options.output.empty()) return exit_code;
  return std::max(exit_code, write_model_output(options.output, to_json_text(record)));
}

}  // namespace

int run_model(const ModelArguments& arguments, const std::string& command_line) {
  const auto options = check_model_arguments(arguments);
  if (!options.is_ok()) return tell_model_failure(options.status(), kUsage);
  if (options->print_link) {
    tell(stdout, "{}", to_json_text(options->links));
    return kSuccess;
  }
  if (!options->fit.empty()) return fit_to_results(*options, command_line);
  if (!options->compare.empty()) return compare_with_results(*options);
  return simulate_all(*options, command_line);
}

}  // namespace tutti::cli
