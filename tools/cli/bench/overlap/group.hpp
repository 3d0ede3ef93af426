// What one group of ranks measured of `tutti bench overlap`.
#pragma once

#include <vector>

#include "bench/measurement.hpp"
#include "bench/overlap/options.hpp"
#include "bench/record.hpp"
#include "bench/supervisor.hpp"

namespace tutti::cli {

struct OverlapOutcome {
  int ranks = 0;
  std::vector<std::vector<OverlapMeasurement>> measurements;  // per rank, in order
  std::vector<Skipped> skipped = {};                          // as rank 0 told
  Supervision end = {};                                       // whether that is complete
};

// A failure here is one to start at all.
Result<OverlapOutcome> measure_overlap(const OverlapOptions& options, int ranks);

// A row per phase and algorithm; the slowest rank of each sample counts. kMismatch where ranks did
// not measure the same.
Result<std::vector<Row>> rows_of(const OverlapOutcome& outcome, const OverlapOptions& options);

}  // namespace tutti::cli
