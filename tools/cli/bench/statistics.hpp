// From samples to the figures that are printed.
#pragma once

#include <cstddef>
#include <vector>

#include "algorithms/catalogue.hpp"
#include "tutti/status.hpp"

namespace tutti::cli {

struct Statistics {
  double p50 = 0, p90 = 0, p99 = 0, min = 0, max = 0;
  std::size_t n = 0;
  friend bool operator==(const Statistics&, const Statistics&) = default;
};

// Percentiles by nearest rank: each is one of the samples. All zero where there are none.
Statistics summarize(std::vector<double> samples);

// Element k is the largest of the ranks' k-th samples: an operation has ended when its last rank
// has. kMismatch where ranks give different numbers of samples.
Result<std::vector<double>> slowest_rank(const std::vector<std::vector<double>>& per_rank);

// GB/s (1e9) of a message. Zero time gives zero.
double algorithm_bandwidth(std::size_t bytes, double time_us);
// What every link must carry at least: nccl-tests' figure, comparable over ranks.
double bus_bandwidth(Collective collective, double algorithm_bandwidth, int ranks);

}  // namespace tutti::cli
