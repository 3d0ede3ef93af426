#include "bench/groups.hpp"

#include <algorithm>
#include <cstdio>

#include "base/try.hpp"
#include "bench/launcher.hpp"
#include "bench/progress.hpp"

namespace tutti::cli {
namespace {

Status run_one(const BenchOptions& options, const GroupWork& work, int ranks, Outcome& outcome) {
  Progress progress(options, stderr);
  Status rows_match = Status::ok();
  const auto on_size = [&](const GroupOutcome& group, Range range) {
    auto rows = rows_of(group, options, range);
    if (!rows.is_ok()) {
      rows_match = rows.status();
      return;
    }
    if (work.describe) std::ranges::for_each(*rows, work.describe);
    note_wrong(group, range, *rows, outcome);
    note_rows(*rows, outcome);
  };
  const auto on_progress = [&](const Measurement& m) { progress.show(ranks, m); };
  TUTTI_ASSIGN(const GroupOutcome group, measure_group({.ranks = ranks,
                                                        .launch = options.launch,
                                                        .joins = !options.launcher.empty(),
                                                        .options = options.communicator(),
                                                        .words = work.words(ranks),
                                                        .work = work.work},
                                                       {on_progress, on_size}));
  note_skipped(ranks, group.skipped, outcome);
  note_buffers(ranks, group.measurements.front(), outcome);
  outcome.traced.push_back(group.operations);
  outcome.complete = note_end(ranks, group.end, outcome);
  return rows_match;
}

}  // namespace

void measure_groups(const BenchOptions& options, const GroupWork& work, Outcome& outcome) {
  for (const int ranks : options.ranks) {
    outcome.complete = false;
    const Status status = run_one(options, work, ranks, outcome);
    if (!status.is_ok()) note_failure(ranks, status.to_string(), outcome);
    if (!status.is_ok() || !outcome.complete) return;
  }
}

}  // namespace tutti::cli
