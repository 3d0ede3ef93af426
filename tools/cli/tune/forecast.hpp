// How long a sweep takes: by rule of thumb, and by what it has taken so far.
#pragma once

#include <cstddef>
#include <string>

#include "tutti/types.hpp"

namespace tutti::cli {

// Seconds until a group of ranks has come together.
double expected_start(Backend backend);
// Seconds for so many candidates at one size: above all their two checks.
double expected_size(std::size_t bytes, std::size_t candidates);

class Forecast {
 public:
  explicit Forecast(double expected_seconds) : expected_(expected_seconds) {}
  // What was expected to take so long has been done.
  void finish(double expected_seconds) { finished_ += expected_seconds; }
  // Seconds: what is left takes as much longer than expected as what was done.
  double left(double elapsed_seconds) const;

 private:
  double expected_ = 0, finished_ = 0;
};

// "42 s", "3 min 20 s".
std::string duration_text(double seconds);

}  // namespace tutti::cli
