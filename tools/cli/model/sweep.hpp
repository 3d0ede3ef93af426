// What the simulation says of clusters and sizes: as values, as lines and as results that are kept.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/record.hpp"
#include "model/options.hpp"

namespace tutti::cli {

// Of one cluster and size: a time for each algorithm of the options, or none.
struct ModelledLine {
  int nodes = 0, ranks = 0;
  std::size_t bytes = 0;
  std::vector<std::optional<double>> us = {};
  std::vector<bool> approximate = {};  // as SimulatedTime has it
  std::vector<std::size_t> chunk_bytes = {};
  std::vector<std::string> why_not = {};  // where there is no time
  // Its place among the algorithms.
  std::optional<std::size_t> fastest() const;
};

ModelledLine simulate_line(const ModelOptions& options, int nodes, std::size_t bytes);

std::string heading_of(const ModelOptions& options);  // two lines
std::string text_of(const ModelOptions& options, const ModelledLine& line);

std::vector<Row> rows_of(const ModelOptions& options, const ModelledLine& line);

}  // namespace tutti::cli
