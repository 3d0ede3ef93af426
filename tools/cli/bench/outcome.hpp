// What a benchmark has come to, group of ranks after group, and how it is told and kept.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/group.hpp"
#include "bench/options.hpp"
#include "bench/printers/printers.hpp"
#include "bench/record.hpp"
#include "bench/supervisor.hpp"
#include "exit_code.hpp"

namespace tutti::cli {

struct Outcome {
  Record record;
  std::function<void(std::span<const Row>)> show = {};  // prints rows that were just measured
  std::vector<TracedGroup> traced;
  std::vector<std::string> notes;  // algorithms that could not run; failures
  std::vector<std::string> repro;  // commands that repeat a row each, where they are wanted
  int exit_code = kSuccess;
  bool complete = false;  // every group ended as it should; results may still be wrong
};

// Algorithms with the same reason in one line.
void note_skipped(int ranks, const std::vector<Skipped>& skipped, Outcome& outcome);
// That buffers are plain, where the command did not ask for that.
void note_buffers(int ranks, const std::vector<Measurement>& measured, Outcome& outcome);
// Whether the group ended as it should; if not, that is noted.
bool note_end(int ranks, const Supervision& end, Outcome& outcome);
void note_failure(int ranks, const std::string& failure, Outcome& outcome);
// Keeps them, and shows them.
void note_rows(const std::vector<Row>& rows, Outcome& outcome);

using MakePrinter = std::function<std::unique_ptr<Printer>(Format, const Look&)>;

// The whole of a campaign: reads the file that is appended to, lets `measure` fill the outcome,
// prints it meanwhile, writes the files. Returns the exit code.
int run_campaign(const BenchOptions& options, const std::string& command_line,
                 const std::function<void(Outcome&)>& measure, const MakePrinter& make_printer);

// "tutti bench: ..." on standard error, by one process of a launch; returns kUsage.
int report_usage(const Status& status, const BenchMachine& machine,
                 std::string_view command = "bench");

// One line per row, with the first element of the first rank that saw something wrong.
void note_wrong(const GroupOutcome& group, Range range, const std::vector<Row>& rows,
                Outcome& outcome);

}  // namespace tutti::cli
