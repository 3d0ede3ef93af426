#include "bench/command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/try.hpp"
#include "bench/calibration.hpp"
#include "bench/group.hpp"
#include "bench/printers/printers.hpp"
#include "bench/progress.hpp"
#include "bench/record.hpp"
#include "bench/worker.hpp"
#include "exit_code.hpp"
#include "machine.hpp"
#include "output_file.hpp"
#include "tutti/version.hpp"

namespace tutti::cli {
namespace {

Format format_for(const BenchOptions& options) {
  const std::string extension = std::filesystem::path(options.output).extension().string();
  if (extension == ".json" || options.append) return Format::kJson;
  if (extension == ".csv") return Format::kCsv;
  if (extension == ".md") return Format::kMarkdown;
  return options.format;
}

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

// What is in the file that is to be appended to; an empty record where there is none.
Result<Record> read_old(const BenchOptions& options, const Record& ours) {
  if (!options.append || !std::filesystem::exists(options.output)) return Record{};
  TUTTI_ASSIGN(const std::string text, read_file(options.output));
  TUTTI_ASSIGN(Record record, record_from_json_text(text, options.output));
  TUTTI_TRY(check_same_machine(record, ours));
  return record;
}

struct Outcome {
  Record record;
  std::vector<TracedGroup> traced;
  std::vector<std::string> notes;  // algorithms that could not run; failures
  int exit_code = kSuccess;
  bool complete = false;  // every group ended as it should; results may still be wrong
};

void note_group(const GroupOutcome& group, Outcome& outcome) {
  for (const Skipped& skipped : group.skipped) {
    outcome.notes.push_back(
        fmt::format("{} ranks: {}: {}", group.ranks, skipped.algorithm, skipped.why));
  }
  for (const std::string& failure : group.failures) {
    outcome.notes.push_back(fmt::format("FAILED with {} ranks: {}", group.ranks, failure));
    outcome.exit_code = kFailure;
  }
}

// One line per row, with the first element of the first rank that saw something wrong.
void note_wrong(const GroupOutcome& group, const std::vector<Row>& rows, Outcome& outcome) {
  for (std::size_t k = 0; k < rows.size(); ++k) {
    if (rows[k].wrong.value_or(0) == 0) continue;
    outcome.exit_code = kFailure;
    const auto& ranks = group.measurements;
    const auto first = std::find_if(ranks.begin(), ranks.end(), [&](const auto& rank) {
      return rank[k].wrong.value_or(0) > 0;
    });
    outcome.notes.push_back(
        fmt::format("WRONG RESULT with {} ranks, {} bytes, {}{}: {} elements, "
                    "first {}",
                    group.ranks, rows[k].bytes, rows[k].algorithm,
                    rows[k].in_place ? " in place" : "", *rows[k].wrong, (*first)[k].first_wrong));
  }
}

// One group after the other; the first that fails is the last.
void run_groups(const BenchOptions& options, Outcome& outcome) {
  for (const int ranks : options.ranks) {
    Progress progress(options, stderr);
    const auto group = measure_group(
        options, ranks, [&](const Measurement& measurement) { progress.show(ranks, measurement); });
    if (!group.is_ok()) {
      outcome.exit_code = kFailure;
      outcome.notes.push_back(
          fmt::format("FAILED with {} ranks: {}", ranks, group.status().to_string()));
      return;
    }
    note_group(*group, outcome);
    outcome.traced.push_back(group->operations);
    if (group->interrupted_by != 0) {
      constexpr int kSignalled = 128;  // as shells have it
      outcome.exit_code = kSignalled + group->interrupted_by;
      outcome.notes.emplace_back("interrupted; nothing was written");
      return;
    }
    if (!group->failures.empty()) return;
    auto rows = rows_of(*group, options);
    if (!rows.is_ok()) {
      outcome.exit_code = kFailure;
      outcome.notes.push_back(rows.status().to_string());
      return;
    }
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

void print_repro(const BenchOptions& options, const Record& record, std::FILE* stream) {
  for (const Row& row : record.rows) {
    BenchOptions one = options;
    one.ranks = {row.ranks};
    one.bytes = {row.bytes};
    one.in_place = row.in_place;
    one.choice = Choice::kNamed;
    one.algorithms = {row.algorithm};
    fmt::print(stream, "tutti bench {}\n", fmt::join(to_arguments(one), " "));
  }
}

// A trace of a run that failed is worth having, too; one that was interrupted has none.
Status write_output(const BenchOptions& options, const Record& old_record, const Outcome& outcome) {
  if (!options.trace.empty() && outcome.exit_code <= kFailure) {
    TUTTI_TRY(write_file_atomically(options.trace, to_trace_json(outcome.traced)));
  }
  if (options.output.empty() || !outcome.complete) return Status::ok();
  const Record merged = options.append ? merge(old_record, outcome.record) : outcome.record;
  return write_file_atomically(options.output, print(merged, options, format_for(options)));
}

int report_usage(const Status& status) {
  fmt::print(stderr, "tutti bench: {}\n", status.message());
  return kUsage;
}

int run_launcher(const BenchOptions& options, const std::string& command_line) {
  Outcome outcome;
  outcome.record.tutti = version();
  outcome.record.environment = describe_environment(options.backend, command_line);
  const auto old_record = read_old(options, outcome.record);
  if (!old_record.is_ok()) return report_usage(old_record.status());

  run_groups(options, outcome);
  add_calibration(options, outcome);

  const bool for_people = options.format == Format::kTable || options.format == Format::kMarkdown;
  if (outcome.exit_code <= kFailure) {
    fmt::print("{}", print(outcome.record, options, options.format));
    if (options.repro) print_repro(options, outcome.record, for_people ? stdout : stderr);
  }
  for (const std::string& note : outcome.notes) {
    fmt::print(for_people && outcome.exit_code == kSuccess ? stdout : stderr, "# {}\n", note);
  }
  const Status written = write_output(options, *old_record, outcome);
  if (!written.is_ok()) {
    fmt::print(stderr, "tutti bench: {}\n", written.to_string());
    return kFailure;
  }
  if (!options.output.empty() && !outcome.complete) {
    fmt::print(stderr, "tutti bench: {} was not written, since the run failed\n", options.output);
  }
  return outcome.exit_code;
}

}  // namespace

int run_bench(const BenchArguments& arguments, const std::string& command_line) {
  const auto options = check_arguments(arguments, bench_machine());
  if (!options.is_ok()) return report_usage(options.status());
  if (options->worker_fd >= 0) {
    return run_rank_process(options->worker_fd, options->communicator(), bench_work(*options));
  }
  return run_launcher(*options, command_line);
}

}  // namespace tutti::cli
