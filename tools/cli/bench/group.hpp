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

struct GroupJob;

struct GroupOutcome {
  int ranks = 0;
  std::vector<std::vector<Measurement>> measurements;  // per rank, in the order they were made
  TracedGroup operations;                              // where a trace is wanted
  std::vector<Skipped> skipped;                        // as rank 0 told
  Supervision end = {};                                // whether the measurements are complete
};

// A part of each rank's measurements.
struct Range {
  std::size_t begin = 0, end = 0;
};

// What is told while a group measures.
struct GroupListener {
  std::function<void(const Measurement&)> on_progress;  // each of rank 0; may be empty
  // All of one size and placement, as soon as every rank has measured them.
  std::function<void(const GroupOutcome&, Range)> on_size;
};

// A failure here is one to start at all.
Result<GroupOutcome> measure_group(const GroupJob& job, const GroupListener& listener);

}  // namespace tutti::cli
