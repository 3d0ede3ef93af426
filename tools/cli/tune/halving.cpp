#include "tune/halving.hpp"

#include <algorithm>

#include "base/try.hpp"
#include "bench/statistics.hpp"

namespace tutti::cli {
namespace {

// Of many candidates one is fastest by chance. What is no better than this is no reason to leave
// what comes first.
constexpr double kAsGoodAs = 1.02;

struct Runner {
  std::size_t candidate = 0;
  std::vector<double> samples_us = {};
  double time_us = 0;
};

class Halving {
 public:
  Halving(std::span<const Configuration> candidates, Track& track, const HalvingOptions& options)
      : candidates_(candidates), track_(track), options_(options) {
    for (std::size_t k = 0; k < candidates.size(); ++k) runners_.push_back({.candidate = k});
  }

  Result<std::optional<HalvingResult>> run() {
    TUTTI_TRY(drop_wrong());
    rounds_left_ = count_rounds();
    for (int samples = options_.first_samples;; samples *= 2) {
      TUTTI_TRY(sample(samples));
      if (final()) break;
      keep_better_half();
    }
    TUTTI_TRY(sample(options_.final_samples));
    TUTTI_TRY(drop_wrong());
    if (runners_.empty()) return std::optional<HalvingResult>();
    return std::optional<HalvingResult>(result());
  }

 private:
  bool final() const { return runners_.size() <= options_.finalists; }

  std::vector<std::size_t> names() const {
    std::vector<std::size_t> result;
    for (const Runner& runner : runners_) result.push_back(runner.candidate);
    return result;
  }

  Status drop_wrong() {
    TUTTI_ASSIGN(const std::vector<bool> right, track_.check(names()));
    std::size_t k = 0;
    std::erase_if(runners_, [&](const Runner&) { return !right[k++]; });
    return Status::ok();
  }

  // Samples all runners, and puts the fastest first.
  Status sample(int wanted) {
    if (runners_.empty()) return Status::ok();
    TUTTI_ASSIGN(const int samples, affordable(wanted));
    TUTTI_ASSIGN(const auto taken, track_.sample(names(), samples));
    for (std::size_t k = 0; k < runners_.size(); ++k) {
      Runner& runner = runners_[k];
      runner.samples_us.insert(runner.samples_us.end(), taken[k].begin(), taken[k].end());
      runner.time_us = summarize(runner.samples_us).p50;
    }
    std::ranges::stable_sort(runners_, {}, &Runner::time_us);
    return Status::ok();
  }

  // Each round may take an equal part of the time that is left. What one takes is known once there
  // was one.
  Result<int> affordable(int wanted) {
    TUTTI_ASSIGN(const double seconds, track_.seconds_left());
    double each = 0;
    for (const Runner& runner : runners_) each += runner.time_us * options_.operations * 1e-6;
    each *= rounds_left_--;
    if (seconds <= 0) return 1;
    return each * wanted <= seconds ? wanted : std::max(1, static_cast<int>(seconds / each));
  }

  // The last one is for the finalists.
  int count_rounds() const {
    int rounds = 2;
    for (std::size_t n = runners_.size(); n > options_.finalists; n -= n / 2) ++rounds;
    return rounds;
  }

  // A runner-up of another algorithm is measured to the end.
  void keep_better_half() {
    const std::size_t half = runners_.size() - runners_.size() / 2;
    const std::size_t kept = std::max(half, options_.finalists);
    const auto last = runners_.begin() + static_cast<std::ptrdiff_t>(kept) - 1;
    const auto other = find_other_algorithm(runners_.front());
    if (other != runners_.end() && other > last) *last = std::move(*other);
    runners_.resize(kept);
  }

  const std::string& algorithm(const Runner& runner) const {
    return candidates_[runner.candidate].algorithm;
  }

  std::vector<Runner>::iterator find_other_algorithm(const Runner& than) {
    return std::ranges::find_if(
        runners_, [&](const Runner& runner) { return algorithm(runner) != algorithm(than); });
  }

  static Standing standing(const Runner& runner) {
    return {runner.candidate, runner.time_us, static_cast<int>(runner.samples_us.size())};
  }

  HalvingResult result() {
    const double good = runners_.front().time_us * kAsGoodAs;
    const Runner* winner = &runners_.front();
    for (const Runner& runner : runners_) {
      if (runner.time_us <= good && runner.candidate < winner->candidate) winner = &runner;
    }
    HalvingResult result{.winner = standing(*winner), .runner_up = {}};
    const auto other = find_other_algorithm(*winner);
    if (other != runners_.end()) result.runner_up = standing(*other);
    return result;
  }

  const std::span<const Configuration> candidates_;
  Track& track_;
  const HalvingOptions options_;
  std::vector<Runner> runners_;
  int rounds_left_ = 0;
};

}  // namespace

Result<std::optional<HalvingResult>> halve(std::span<const Configuration> candidates, Track& track,
                                           const HalvingOptions& options) {
  return Halving(candidates, track, options).run();
}

}  // namespace tutti::cli
