#include "bench/group.hpp"

#include "base/try.hpp"
#include "bench/launcher.hpp"
#include "bench/worker.hpp"

namespace tutti::cli {
namespace {

std::vector<std::string> words_of(const BenchOptions& options, int ranks) {
  BenchOptions mine = options;
  mine.ranks = {ranks};
  std::vector<std::string> words = to_arguments(mine);
  words.insert(words.begin(), "bench");
  if (!options.trace.empty()) words.insert(words.end(), {"--trace", options.trace});
  return words;
}

}  // namespace

Result<GroupOutcome> measure_group(const BenchOptions& options, int ranks,
                                   const std::function<void(const Measurement&)>& on_progress) {
  GroupOutcome outcome{.ranks = ranks};
  outcome.measurements.resize(static_cast<std::size_t>(ranks));
  outcome.operations.resize(static_cast<std::size_t>(ranks));
  const auto take = [&](int rank, const Report& report) {
    if (const auto* measurement = std::get_if<Measurement>(&report)) {
      if (rank == 0) on_progress(*measurement);
      outcome.measurements[static_cast<std::size_t>(rank)].push_back(*measurement);
    } else if (const auto* skipped = std::get_if<Skipped>(&report); skipped && rank == 0) {
      outcome.skipped.push_back(*skipped);
    } else if (const auto* traced = std::get_if<Operations>(&report)) {
      outcome.operations[static_cast<std::size_t>(rank)] = traced->operations;
    }
  };
  TUTTI_ASSIGN(outcome.end, run_group({.ranks = ranks,
                                       .launch = options.launch,
                                       .options = options.communicator(),
                                       .words = words_of(options, ranks),
                                       .work = bench_work(options)},
                                      take));
  return outcome;
}

}  // namespace tutti::cli
