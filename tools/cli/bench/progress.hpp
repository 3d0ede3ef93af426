// One line on a terminal that says how far a long sweep is. Nothing elsewhere, and nothing where
// the rows themselves appear on a terminal.
#pragma once

#include <cstddef>
#include <cstdio>

#include "bench/measurement.hpp"
#include "bench/options.hpp"

namespace tutti::cli {

class Progress {
 public:
  Progress(const BenchOptions& options, std::FILE* stream);
  ~Progress();  // wipes the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(int ranks, const Measurement& measurement);

 private:
  const BenchOptions& options_;
  std::FILE* stream_ = nullptr;  // null: nothing is shown
};

}  // namespace tutti::cli
