// What one group of ranks measured.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/measurement.hpp"
#include "bench/options.hpp"
#include "bench/supervisor.hpp"
#include "bench/trace.hpp"

namespace tutti::cli {

struct GroupOutcome {
  int ranks = 0;
  std::vector<std::vector<Measurement>> measurements;  // per rank, in the order they were made
  TracedGroup operations;                              // where a trace is wanted
  std::vector<Skipped> skipped;                        // as rank 0 told
  Supervision end = {};                                // whether the measurements are complete
};

// `on_progress` is called for each measurement of rank 0. A failure here is one to start at all.
Result<GroupOutcome> measure_group(const BenchOptions& options, int ranks,
                                   const std::function<void(const Measurement&)>& on_progress);

}  // namespace tutti::cli
