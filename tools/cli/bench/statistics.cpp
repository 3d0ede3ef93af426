#include "bench/statistics.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "bench/lengths.hpp"

namespace tutti::cli {
namespace {

double nearest_rank(const std::vector<double>& sorted, double fraction) {
  const auto rank =
      static_cast<std::size_t>(std::ceil(fraction * static_cast<double>(sorted.size())));
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

}  // namespace

Statistics summarize(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  return {.p50 = nearest_rank(samples, 0.5),
          .p90 = nearest_rank(samples, 0.9),
          .p99 = nearest_rank(samples, 0.99),
          .min = samples.front(),
          .max = samples.back(),
          .n = samples.size()};
}

Result<std::vector<double>> slowest_rank(const std::vector<std::vector<double>>& per_rank) {
  if (per_rank.empty()) return std::vector<double>{};
  std::vector<double> slowest = per_rank.front();
  for (std::size_t rank = 1; rank < per_rank.size(); ++rank) {
    const std::vector<double>& samples = per_rank[rank];
    if (samples.size() != slowest.size()) {
      return Status(StatusCode::kMismatch, fmt::format("rank {} took {} samples, rank 0 took {}",
                                                       rank, samples.size(), slowest.size()));
    }
    for (std::size_t k = 0; k < samples.size(); ++k) slowest[k] = std::max(slowest[k], samples[k]);
  }
  return slowest;
}

double algorithm_bandwidth(std::size_t bytes, double time_us) {
  constexpr double kBytesPerMicrosecondInGbps = 1e3;
  return time_us > 0 ? static_cast<double>(bytes) / time_us / kBytesPerMicrosecondInGbps : 0;
}

double bus_bandwidth(Collective collective, double algorithm_bandwidth, int ranks) {
  // A root without pieces has every byte cross its links.
  if (has_root(collective) && !has_pieces(collective)) return algorithm_bandwidth;
  if (is_pairwise(collective)) return algorithm_bandwidth;
  // Of each byte: there, and back where every rank gets what was reduced.
  const int crossings = reduces(collective) && !has_pieces(collective) ? 2 : 1;
  const double share = is_uneven(collective) ? share_of_lengths(ranks) : 1;
  return algorithm_bandwidth * share * crossings * (ranks - 1) / ranks;
}

}  // namespace tutti::cli
