// What becomes of a group in which one rank stops, or runs another operation.
#include <fmt/format.h>

#include "laboratory/campaigns.hpp"

namespace tutti::laboratory {
namespace {

using simulated::Breach;

bool has_reason(const FailureRecord& record, FailureReason reason) {
  return record.state == 1 && record.reason == static_cast<std::uint32_t>(reason);
}

// A rank that gave up names the one that stopped, or one that gave up itself.
std::string judge_blame(const Experiment& experiment, int stopped) {
  for (int r = 0; r < experiment.setup().ranks; ++r) {
    const FailureRecord& record = experiment.failure(r);
    if (r == stopped || record.state == 0) continue;
    if (record.waiting_rank != r) return fmt::format("rank {} reports for another", r);
    const int missing = record.missing_rank;
    if (missing != stopped && experiment.failure(missing).state == 0) {
      return fmt::format("rank {} blames rank {}, which did its part", r, missing);
    }
    if (record.seen_epoch >= record.expected_epoch) {
      return fmt::format("rank {} waited for what had come", r);
    }
  }
  return {};
}

}  // namespace

std::string run_stop(const Setup& setup, Stop stop, std::uint64_t seed,
                     const simulated::Mutation* mutation) {
  Experiment experiment(setup);
  Experiment::Options options;
  options.stop = stop;
  options.mutation = mutation;
  simulated::RandomSchedule schedule(seed, setup.ranks);
  experiment.run(schedule, options);
  if (experiment.violation().breach == Breach::kDeadlock) return experiment.violation().text;
  if (std::string blame = judge_blame(experiment, stop.rank); !blame.empty()) return blame;
  if (stop.steps > 0) return {};
  // It never began: all others must have noticed, and it must have left them alone since.
  for (int r = 0; r < setup.ranks; ++r) {
    if (r == stop.rank || has_reason(experiment.failure(r), FailureReason::kTimeout)) continue;
    return fmt::format("rank {} did not notice that rank {} never came", r, stop.rank);
  }
  return experiment.changed_after_wake(stop) ? "a rank that woke up late changed memory of others"
                                             : "";
}

std::string run_mismatch(const Setup& setup, std::uint64_t seed,
                         const simulated::Mutation* mutation) {
  Experiment experiment(setup);
  Experiment::Options options;
  options.mismatch = true;
  options.mutation = mutation;
  simulated::RandomSchedule schedule(seed, setup.ranks);
  experiment.run(schedule, options);
  if (experiment.violation().breach == Breach::kDeadlock) return experiment.violation().text;
  for (int r = 0; r < setup.ranks; ++r) {
    if (!has_reason(experiment.failure(r), FailureReason::kMismatch)) {
      return fmt::format("rank {} did not notice that rank 1 runs another operation", r);
    }
  }
  return {};
}

}  // namespace tutti::laboratory
