#include "bench/outcome.hpp"

#include <signal.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "base/printable.hpp"
#include "base/try.hpp"
#include "commit.hpp"
#include "machine.hpp"
#include "output_file.hpp"
#include "planning/reasons.hpp"
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

int refuse_usage(const Status& status, std::string_view command) {
  tell_line(stderr, "tutti {}: {}", command, status.message());
  return kUsage;
}

// A trace of a run that failed is worth having, too; one that was interrupted has none.
Status write_output(const BenchOptions& options, const Record& old_record, const Outcome& outcome,
                    const MakePrinter& make_printer) {
  if (!options.trace.empty() && outcome.exit_code <= kFailure) {
    TUTTI_TRY(write_file_atomically(options.trace, to_trace_json(outcome.traced)));
  }
  if (options.output.empty() || !outcome.complete) return Status::ok();
  const Record merged = options.append ? merge(old_record, outcome.record) : outcome.record;
  return write_file_atomically(options.output,
                               make_printer(format_for(options), {})->whole(merged));
}

// Standard output while a campaign runs. What is there is seen at once, also through a pipe.
class Screen {
 public:
  Screen(std::unique_ptr<Printer> printer, bool colours)
      : printer_(std::move(printer)), colours_(colours) {}

  void begin(const Record& record) { show(printable(printer_->begin(record), "\n")); }
  void add(std::span<const Row> rows) { show(printer_->add(rows)); }
  void end(const Record& record) { show(printer_->end(record)); }

 private:
  // Rows hold names of the catalogue, and escape only to colour them.
  void show(const std::string& text) const {
    if (text.empty()) return;
    tell_as_is(stdout, colours_ ? text : printable(text, "\n"));
    std::fflush(stdout);
  }

  std::unique_ptr<Printer> printer_;
  bool colours_;
};

void tell_rest(const BenchOptions& options, const Outcome& outcome) {
  const bool for_people = options.format == Format::kTable || options.format == Format::kMarkdown;
  if (outcome.exit_code <= kFailure) {
    for (const std::string& command : outcome.repro) {
      tell_line(for_people ? stdout : stderr, "{}", command);
    }
  }
  for (const std::string& note : outcome.notes) {
    tell_line(for_people && outcome.exit_code == kSuccess ? stdout : stderr, "# {}", note);
  }
}

// Ranks know the timeout as an option of their communicator; who typed the command gave its option.
std::string in_options_of_the_command(std::string failure) {
  constexpr std::string_view kTheirs = "CommunicatorOptions::timeout", kOurs = "--timeout-ms";
  if (const auto at = failure.find(kTheirs); at != std::string::npos) {
    failure.replace(at, kTheirs.size(), kOurs);
  }
  return failure;
}

}  // namespace

void note_skipped(int ranks, const std::vector<Skipped>& skipped, Outcome& outcome) {
  Reasons reasons;
  for (const Skipped& each : skipped) reasons.add(each.algorithm, each.why);
  for (const std::string& line : reasons.lines()) {
    outcome.notes.push_back(fmt::format("{} ranks: {}", ranks, line));
  }
}

void note_buffers(int ranks, const std::vector<Measurement>& measured, Outcome& outcome) {
  if (std::ranges::none_of(measured, &Measurement::plain)) return;
  outcome.notes.push_back(
      fmt::format("{} ranks: buffers are plain, since this group has no symmetric memory", ranks));
}

void note_failure(int ranks, const std::string& failure, Outcome& outcome) {
  outcome.notes.push_back(
      fmt::format("FAILED with {} ranks: {}", ranks, in_options_of_the_command(failure)));
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

void note_rows(const std::vector<Row>& rows, Outcome& outcome) {
  outcome.record.rows.insert(outcome.record.rows.end(), rows.begin(), rows.end());
  if (outcome.show) outcome.show(rows);
}

int run_campaign(const BenchOptions& options, const std::string& command_line,
                 const std::function<void(Outcome&)>& measure, const MakePrinter& make_printer) {
  Outcome outcome;
  if (!options.speaks) {  // another rank of the launch does
    measure(outcome);
    // A launcher ends all ranks once one has failed, and the one that speaks may not have spoken.
    if (outcome.exit_code == kFailure) std::this_thread::sleep_for(std::chrono::milliseconds(500));
    return outcome.exit_code;
  }
  // A reader of the rows that has seen enough does not keep the file from being written.
  if (!options.output.empty()) ::signal(SIGPIPE, SIG_IGN);
  outcome.record.tutti = version();
  outcome.record.commit = commit();
  outcome.record.environment = describe_environment(options.backend, command_line);
  const auto old_record = read_old(options, outcome.record);
  if (!old_record.is_ok()) return refuse_usage(old_record.status(), "bench");
  Look look = look_of(stdout);
  if (!options.launcher.empty()) look.colours = false;  // mpirun gives its ranks a terminal
  Screen screen(make_printer(options.format, look), look.colours);
  screen.begin(outcome.record);
  outcome.show = [&](std::span<const Row> rows) { screen.add(rows); };

  measure(outcome);

  if (outcome.exit_code <= kFailure) screen.end(outcome.record);
  tell_rest(options, outcome);
  const Status written = write_output(options, *old_record, outcome, make_printer);
  if (!written.is_ok()) {
    tell_line(stderr, "tutti bench: {}", written.to_string());
    return kFailure;
  }
  if (!options.output.empty() && !outcome.complete) {
    tell_line(stderr, "tutti bench: {} was not written, since the run failed", options.output);
  }
  return outcome.exit_code;
}

int report_usage(const Status& status, const BenchMachine& machine, std::string_view command) {
  const bool another_says_it = machine.launch.is_ok() && machine.launch->rank > 0;
  return another_says_it ? kUsage : refuse_usage(status, command);
}

void note_wrong(const GroupOutcome& group, Range range, const std::vector<Row>& rows,
                Outcome& outcome) {
  for (std::size_t k = 0; k < rows.size(); ++k) {
    if (rows[k].wrong.value_or(0) == 0) continue;
    outcome.exit_code = kFailure;
    const auto& ranks = group.measurements;
    const std::size_t at = range.begin + k;
    const auto first = std::find_if(ranks.begin(), ranks.end(), [&](const auto& rank) {
      return rank[at].wrong.value_or(0) > 0;
    });
    outcome.notes.push_back(
        fmt::format("WRONG RESULT with {} ranks, {} bytes, {}{}: {} elements, "
                    "first {}",
                    group.ranks, rows[k].bytes, rows[k].algorithm,
                    rows[k].in_place ? " in place" : "", *rows[k].wrong, (*first)[at].first_wrong));
  }
}

}  // namespace tutti::cli
