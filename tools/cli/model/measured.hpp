// Measured results as calls of the simulation, and how far it is from them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "bench/record.hpp"
#include "model/links.hpp"
#include "model/predict.hpp"
#include "tutti/status.hpp"

namespace tutti::model {

struct MeasuredCall {
  std::string algorithm;
  ModelledCall call;
  int ranks = 0;
  double us = 0;  // p50 of the slowest rank
};

// What is looked for in results: of these algorithms, on whole nodes of so many ranks.
struct MeasuredFilter {
  Collective collective = Collective::kAllReduce;
  std::span<const ModelledAlgorithm> algorithms;
  Chunks chunks = Chunks::kTcp;
  int ranks_per_node = 1;
};
// The rows of `record` that the simulation can run: out of place; on GPUs as graphs.
std::vector<MeasuredCall> measured_calls(const cli::Record& record, const MeasuredFilter& filter);
// Of all files, in their order. kInvalidArgument: a file cannot be read, or has no such row.
Result<std::vector<MeasuredCall>> read_measured_calls(std::span<const std::string> files,
                                                      const MeasuredFilter& filter);

struct ComparedCall {
  MeasuredCall measured;
  double modelled_us = 0;
  // In percent of what was measured: above 0 where the simulation is slower.
  double error_percent() const { return 100 * (modelled_us / measured.us - 1); }
};
Result<std::vector<ComparedCall>> compare(std::span<const MeasuredCall> calls, const Links& links,
                                          int ranks_per_node,
                                          Folding folding = Folding::kWherePossible);

// Of the absolute errors.
struct Errors {
  std::size_t calls = 0;
  double median_percent = 0, most_percent = 0;
};
Errors errors_of(std::span<const ComparedCall> calls);

}  // namespace tutti::model
