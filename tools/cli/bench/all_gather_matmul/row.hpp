// What a row of `tutti bench all_gather_matmul` says besides what a row of a matmul says.
#pragma once

#include <string>

namespace tutti::cli {

// A prediction, taken apart: the sum of all is the predicted time.
struct PredictedParts {
  double forecast_us = 0, clock_us = 0, deficit_us = 0;  // of the matmul alone, as measured
  double order_us = 0, gating_us = 0, contention_us = 0;
  friend bool operator==(const PredictedParts&, const PredictedParts&) = default;
};

struct ArrivalRow {
  int ranks = 1;                 // shards of A; one of them is there beforehand
  int chunks = 1;                // of a shard
  int k_groups = 1;              // of a chunk
  int pullers = 0;               // SMs that the gated kernel left to them
  std::string arrival = "open";  // "open", "model", "trace:arrival.json"
  std::string trace =
      {};  // "modelled, of 8 GPUs ...": where the times are from; of open flags empty
  std::string order = {};  // of the tiles; empty: a matmul that waits for nothing
  double over_own = 0;     // of times, over own_matmul_only: the median of all rounds
  double last_us = 0;      // the last chunk arrives; 0: all are there beforehand
  double bound_us = 0;     // the larger of that and own_matmul_only's time
  double over_bound = 0;
  double predicted_us = 0;     // 0: not predicted
  double predicted_error = 0;  // of the prediction, over the measured time: 0.01 is 1 % too long
  PredictedParts parts = {};

  // What rows must have in common to be compared.
  bool same_kind(const ArrivalRow& other) const {
    return ranks == other.ranks && chunks == other.chunks && k_groups == other.k_groups &&
           pullers == other.pullers && arrival == other.arrival;
  }
  friend bool operator==(const ArrivalRow&, const ArrivalRow&) = default;
};

}  // namespace tutti::cli
