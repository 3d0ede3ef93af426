#include "bench/overlap/clocks.hpp"

namespace tutti::cli {

double mean_megahertz(std::span<const ClockReading> before, std::span<const ClockReading> after) {
  double sum = 0;
  int seen = 0;
  for (std::size_t k = 0; k < before.size() && k < after.size(); ++k) {
    const auto& [cycles, nanoseconds] = before[k];
    if (nanoseconds == 0 || after[k].nanoseconds <= nanoseconds) continue;
    sum += 1e3 * static_cast<double>(after[k].cycles - cycles) /
           static_cast<double>(after[k].nanoseconds - nanoseconds);
    ++seen;
  }
  return seen == 0 ? 0 : sum / seen;
}

}  // namespace tutti::cli
