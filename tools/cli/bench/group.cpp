#include "bench/group.hpp"

#include <algorithm>

#include "base/try.hpp"
#include "bench/launcher.hpp"

namespace tutti::cli {
namespace {

class GroupMeasurements {
 public:
  GroupMeasurements(int ranks, const GroupListener& listener)
      : listener_(listener), complete_(static_cast<std::size_t>(ranks)) {
    outcome_.ranks = ranks;
    outcome_.measurements.resize(complete_.size());
    outcome_.operations.resize(complete_.size());
  }

  void take(int rank, const Report& report) {
    const auto index = static_cast<std::size_t>(rank);
    if (const auto* measurement = std::get_if<Measurement>(&report)) {
      if (rank == 0 && listener_.on_progress) listener_.on_progress(*measurement);
      outcome_.measurements[index].push_back(*measurement);
      if (measurement->last) finish_size(index);
    } else if (const auto* skipped = std::get_if<Skipped>(&report); skipped && rank == 0) {
      outcome_.skipped.push_back(*skipped);
    } else if (const auto* traced = std::get_if<Operations>(&report)) {
      outcome_.operations[index] = traced->operations;
    }
  }

  GroupOutcome ended(const Supervision& end) {
    outcome_.end = end;
    return std::move(outcome_);
  }

 private:
  // One rank may be ahead of another one by a size or two.
  void finish_size(std::size_t rank) {
    complete_[rank].push_back(outcome_.measurements[rank].size());
    const bool all =
        std::ranges::all_of(complete_, [&](const auto& sizes) { return sizes.size() > sizes_; });
    if (!all) return;
    const std::size_t begin = sizes_ == 0 ? 0 : complete_.front()[sizes_ - 1];
    listener_.on_size(outcome_, {begin, complete_.front()[sizes_]});
    ++sizes_;
  }

  const GroupListener& listener_;
  GroupOutcome outcome_;
  std::vector<std::vector<std::size_t>> complete_;  // per rank: where each of its sizes ends
  std::size_t sizes_ = 0;                           // that all ranks have measured
};

}  // namespace

Result<GroupOutcome> measure_group(const GroupJob& job, const GroupListener& listener) {
  GroupMeasurements measurements(job.ranks, listener);
  TUTTI_ASSIGN(const Supervision end, run_group(job, [&](int rank, const Report& report) {
                 measurements.take(rank, report);
               }));
  return measurements.ended(end);
}

}  // namespace tutti::cli
