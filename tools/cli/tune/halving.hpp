// Successive halving: all candidates are sampled a little, the better half of them more, and so on;
// the last few are measured well.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "bench/configuration.hpp"
#include "tutti/status.hpp"

namespace tutti::cli {

// Candidates are named by their index. What it answers is the same on every rank.
class Track {
 public:
  virtual ~Track() = default;
  // Which of them give exact results.
  virtual Result<std::vector<bool>> check(std::span<const std::size_t> candidates) = 0;
  // `samples` of each, in turn: element k has the microseconds per operation of candidates[k].
  virtual Result<std::vector<std::vector<double>>> sample(std::span<const std::size_t> candidates,
                                                          int samples) = 0;
  virtual Result<double> seconds_left() = 0;
};

struct HalvingOptions {
  int operations = 1;         // of one sample
  int first_samples = 4;      // of each candidate; twice as many in each round
  std::size_t finalists = 4;  // 2 or more
  int final_samples = 50;
};

struct Standing {
  std::size_t candidate = 0;
  double time_us = 0;  // median
  int samples = 0;
};

struct HalvingResult {
  Standing winner;
  std::optional<Standing> runner_up;  // the best of another algorithm
};

// Time that runs out takes samples away, down to one of each, and no check. Nothing where no
// candidate is right. Of candidates that are as good as equal the first in the list wins.
Result<std::optional<HalvingResult>> halve(std::span<const Configuration> candidates, Track& track,
                                           const HalvingOptions& options);

}  // namespace tutti::cli
