#include "tune/forecast.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace tutti::cli {

double expected_start(Backend backend) { return backend == Backend::kCuda ? 8 : 0.3; }

double expected_size(std::size_t bytes, std::size_t candidates) {
  constexpr double kEach = 0.02, kEachByte = 2e-9;
  return static_cast<double>(candidates) * (kEach + kEachByte * static_cast<double>(bytes));
}

double Forecast::left(double elapsed_seconds) const {
  const double pace = finished_ > 0 ? elapsed_seconds / finished_ : 1;
  return std::max(0.0, expected_ - finished_) * pace;
}

std::string duration_text(double seconds) {
  const auto whole = std::lround(seconds);
  if (whole < 60) return fmt::format("{} s", whole);
  return fmt::format("{} min {} s", whole / 60, whole % 60);
}

}  // namespace tutti::cli
