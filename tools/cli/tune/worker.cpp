#include "tune/worker.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

#include "base/try.hpp"
#include "bench/sampler.hpp"
#include "group/communicator_impl.hpp"
#include "planning/filter.hpp"
#include "tune/agree.hpp"
#include "tune/candidates.hpp"
#include "tune/halving.hpp"

namespace tutti::cli {
namespace {

using Clock = std::chrono::steady_clock;

class RankTuner : public Track {
 public:
  RankTuner(Communicator& communicator, const TuneOptions& options, const Reporter& reporter)
      : communicator_(communicator),
        options_(options),
        report_(reporter),
        sampler_(communicator, options.bench, reporter) {}

  Status run() {
    if (communicator_.impl().topology().gpu == "mixed") {
      return {StatusCode::kUnsupported, "a table is of one kind of GPU, and these differ"};
    }
    if (const int nodes = communicator_.impl().topology().nodes(); nodes > 1) {
      return {StatusCode::kUnsupported,
              fmt::format("a table is of the ranks of one node, and these are on {} nodes; between "
                          "nodes `tutti bench --algorithms all` measures, and TUTTI_TUNE chooses",
                          nodes)};
    }
    TUTTI_TRY(sampler_.open());
    for (size_ = 0; size_ < options_.bench.bytes.size(); ++size_) TUTTI_TRY(tune());
    return Status::ok();
  }

  Result<std::vector<bool>> check(std::span<const std::size_t> candidates) override {
    TUTTI_TRY(sampler_.fill_inputs(iteration_++));  // fresh: what is left over cannot pass
    std::vector<bool> right;
    for (const std::size_t candidate : candidates) {
      TUTTI_ASSIGN(const bool exact, gives_exact_results(candidate));
      right.push_back(exact);
    }
    return right;
  }

  Result<std::vector<std::vector<double>>> sample(std::span<const std::size_t> candidates,
                                                  int samples) override;

  Result<double> seconds_left() override {
    const std::chrono::duration<double> left = size_end_ - Clock::now();
    TUTTI_ASSIGN(const auto most, most_of_ranks({-left.count()}));
    return -most.front();
  }

 private:
  Status tune();
  std::string why_not_tuned(const Algorithm& row) const;
  Result<std::vector<Configuration>> choose_candidates();
  Result<bool> gives_exact_results(std::size_t candidate);
  Status report_result(const HalvingResult& result);
  Result<std::vector<double>> most_of_ranks(const std::vector<double>& mine) {
    return cli::most_of_ranks(communicator_, mine, options_.bench.timeout);
  }

  Communicator& communicator_;
  const TuneOptions& options_;
  const Reporter& report_;
  Sampler sampler_;
  const Clock::time_point end_ = Clock::now() + options_.seconds;
  std::size_t size_ = 0;
  Clock::time_point size_end_;
  std::uint32_t iteration_ = 0;
  std::vector<Configuration> candidates_;
  std::vector<std::unique_ptr<Trial>> trials_;
};

// What auto would not take though a table named it.
std::string RankTuner::why_not_tuned(const Algorithm& row) const {
  if ((row.needs & kNeedsAnyWindows) == 0) return {};
  return why_not_by_itself(row, Request{}, communicator_.impl().topology(),
                           MeasuredWith::kSymmetric);
}

Result<std::vector<Configuration>> RankTuner::choose_candidates() {
  const std::size_t bytes = options_.bench.bytes[size_];
  std::vector<Configuration> candidates;
  for (const std::string& name : options_.bench.algorithms) {
    TUTTI_ASSIGN(const std::optional<Plan> plan, sampler_.plan_or_skip(name));
    if (!plan) continue;
    if (plan->emulated) {
      TUTTI_TRY(report_(Skipped{name, "is emulated here, and no table may name it"}));
      continue;
    }
    TUTTI_ASSIGN(const Algorithm* row, find_algorithm(options_.bench.collective, name));
    if (const std::string why = why_not_tuned(*row); !why.empty()) {
      TUTTI_TRY(report_(Skipped{name, why}));
      continue;
    }
    const Extent extent{bytes, communicator_.size(), options_.bench.token_bytes()};
    for (auto& each : candidates_for(*row, extent, communicator_.backend())) {
      const bool without = std::ranges::count(options_.without, to_text(each)) > 0;
      if (!without) candidates.push_back(std::move(each));
    }
  }
  return candidates;
}

// Sizes share the time that is left equally.
Status RankTuner::tune() {
  const auto now = Clock::now();
  const auto sizes_left = static_cast<int>(options_.bench.bytes.size() - size_);
  size_end_ = now + (end_ - now) / sizes_left;
  iteration_ = 0;
  sampler_.begin(options_.bench.message_bytes(size_, communicator_.size()), false);
  TUTTI_ASSIGN(candidates_, choose_candidates());
  trials_.clear();
  trials_.resize(candidates_.size());
  TUTTI_ASSIGN(const auto result,
               halve(candidates_, *this, {.operations = options_.bench.operations()}));
  return result ? report_result(*result) : Status::ok();
}

Result<bool> RankTuner::gives_exact_results(std::size_t candidate) {
  const std::string name = to_text(candidates_[candidate]);
  TUTTI_TRY(report_(Trying{size_, name}));
  std::unique_ptr<Trial>& trial = trials_[candidate];
  if (!trial) {
    TUTTI_ASSIGN(trial, sampler_.prepare(candidates_[candidate]));
  }
  TUTTI_TRY(sampler_.sample_checked(*trial));
  if (*trial->wrong > 0) {
    TUTTI_TRY(report_(
        Dropped{size_, name,
                fmt::format("elements wrong: {}, first {}", *trial->wrong, trial->first_wrong)}));
  }
  TUTTI_ASSIGN(const auto most, most_of_ranks({static_cast<double>(*trial->wrong)}));
  return most.front() == 0;
}

Result<std::vector<std::vector<double>>> RankTuner::sample(std::span<const std::size_t> candidates,
                                                           int samples) {
  TUTTI_TRY(report_(Trying{size_}));
  std::vector<Contender*> contenders;
  for (const std::size_t candidate : candidates) {
    contenders.push_back(&trials_[candidate]->contender);
    contenders.back()->samples_us.clear();
  }
  TUTTI_TRY(sampler_.sample(contenders, samples));
  std::vector<double> mine;
  for (const Contender* contender : contenders) {
    mine.insert(mine.end(), contender->samples_us.begin(), contender->samples_us.end());
  }
  TUTTI_ASSIGN(const auto slowest, most_of_ranks(mine));
  std::vector<std::vector<double>> result;
  for (auto at = slowest.begin(); at != slowest.end(); at += samples) {
    result.emplace_back(at, at + samples);
  }
  return result;
}

Status RankTuner::report_result(const HalvingResult& result) {
  Tuned tuned{.size = size_,
              .best = candidates_[result.winner.candidate],
              .time_us = result.winner.time_us,
              .samples = result.winner.samples};
  if (result.runner_up) {
    tuned.runner_up = candidates_[result.runner_up->candidate].algorithm;
    tuned.runner_up_us = result.runner_up->time_us;
  }
  return report_(tuned);
}

}  // namespace

RankWork tune_work(const TuneOptions& options) {
  return [&options](Communicator& communicator, const Reporter& reporter) {
    RankTuner tuner(communicator, options, reporter);
    const Status status = tuner.run();
    if (!status.is_ok()) give_up(communicator, status);
    return status;
  };
}

}  // namespace tutti::cli
