#include "bench/outcome.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/try.hpp"
#include "machine.hpp"
#include "output_file.hpp"
#include "tell.hpp"
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

// What is in the file that is to be appended to; an empty record where there is none.
Result<Record> read_old(const BenchOptions& options, const Record& ours) {
  if (!options.append || !std::filesystem::exists(options.output)) return Record{};
  TUTTI_ASSIGN(const std::string text, read_file(options.output));
  TUTTI_ASSIGN(Record record, record_from_json_text(text, options.output));
  TUTTI_TRY(check_same_machine(record, ours));
  return record;
}

// A trace of a run that failed is worth having, too; one that was interrupted has none.
Status write_output(const BenchOptions& options, const Record& old_record, const Outcome& outcome,
                    const Printer& print) {
  if (!options.trace.empty() && outcome.exit_code <= kFailure) {
    TUTTI_TRY(write_file_atomically(options.trace, to_trace_json(outcome.traced)));
  }
  if (options.output.empty() || !outcome.complete) return Status::ok();
  const Record merged = options.append ? merge(old_record, outcome.record) : outcome.record;
  return write_file_atomically(options.output, print(merged, format_for(options)));
}

}  // namespace

void note_skipped(int ranks, const std::vector<Skipped>& skipped, Outcome& outcome) {
  for (const Skipped& each : skipped) {
    outcome.notes.push_back(fmt::format("{} ranks: {}: {}", ranks, each.algorithm, each.why));
  }
}

void note_failure(int ranks, const std::string& failure, Outcome& outcome) {
  outcome.notes.push_back(fmt::format("FAILED with {} ranks: {}", ranks, failure));
  outcome.exit_code = kFailure;
}

bool note_end(int ranks, const Supervision& end, Outcome& outcome) {
  for (const std::string& failure : end.failures) note_failure(ranks, failure, outcome);
  if (end.interrupted_by == 0) return end.failures.empty();
  constexpr int kSignalled = 128;  // as shells have it
  outcome.exit_code = kSignalled + end.interrupted_by;
  outcome.notes.emplace_back("interrupted; nothing was written");
  return false;
}

int run_campaign(const BenchOptions& options, const std::string& command_line,
                 const std::function<void(Outcome&)>& measure, const Printer& print) {
  Outcome outcome;
  outcome.record.tutti = version();
  outcome.record.environment = describe_environment(options.backend, command_line);
  const auto old_record = read_old(options, outcome.record);
  if (!old_record.is_ok()) return report_usage(old_record.status());

  measure(outcome);

  const bool for_people = options.format == Format::kTable || options.format == Format::kMarkdown;
  if (outcome.exit_code <= kFailure) {
    tell(stdout, "{}", print(outcome.record, options.format));
    for (const std::string& command : outcome.repro) {
      tell_line(for_people ? stdout : stderr, "{}", command);
    }
  }
  for (const std::string& note : outcome.notes) {
    tell_line(for_people && outcome.exit_code == kSuccess ? stdout : stderr, "# {}", note);
  }
  const Status written = write_output(options, *old_record, outcome, print);
  if (!written.is_ok()) {
    tell_line(stderr, "tutti bench: {}", written.to_string());
    return kFailure;
  }
  if (!options.output.empty() && !outcome.complete) {
    tell_line(stderr, "tutti bench: {} was not written, since the run failed", options.output);
  }
  return outcome.exit_code;
}

int report_usage(const Status& status, std::string_view command) {
  tell_line(stderr, "tutti {}: {}", command, status.message());
  return kUsage;
}

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

}  // namespace tutti::cli
