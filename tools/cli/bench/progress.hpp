// One line on a terminal that says how far a long sweep is. Nothing elsewhere.
#pragma once

#include <cstddef>
#include <cstdio>

#include "bench/measurement.hpp"
#include "bench/options.hpp"

namespace tutti::cli {

class Progress {
 public:
  // `stream` is written to only if it is a terminal.
  Progress(const BenchOptions& options, std::FILE* stream);
  ~Progress();  // wipes the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(int ranks, const Measurement& measurement);

 private:
  const BenchOptions& options_;
  std::FILE* stream_;  // null: not a terminal
};

}  // namespace tutti::cli
