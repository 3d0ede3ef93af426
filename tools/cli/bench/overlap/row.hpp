// What a row of `tutti bench overlap` says beside what every row says.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace tutti::cli {

struct RankTimes {
  double mean = 0, p50 = 0, p90 = 0, max = 0;  // us
  friend bool operator==(const RankTimes&, const RankTimes&) = default;
};

struct OverlapRow {
  std::string phase;  // "overlap"
  // C = A x B, [m, k] x [k, n]; dependent: A is what is gathered.
  std::size_t m = 0, n = 0, k = 0;
  bool dependent = false, tf32 = false;
  std::string compute = "matmul";  // what is beside the all_gather; also "arithmetic"
  int pause_ms = 0;                // before each sample
  std::string library = {};        // that multiplies; empty: the all_gather alone
  double mean_us = 0;              // of the slowest rank of each sample, as time_us
  std::vector<RankTimes> per_rank = {};
  double matmul_us = 0, gather_us = 0;  // p50 of their own time within the phase; 0: not in it
  double tflops = 0;                    // by matmul_us
  double megahertz = 0;  // of the multiprocessors during it, p50 of the slowest rank; 0: unknown
  // Against each part alone, by p50; empty where that was not measured.
  std::optional<double> exposed_us = {};       // over the matmul alone, not below 0
  std::optional<double> efficiency = {};       // the longer part alone, over all
  std::optional<double> matmul_slowdown = {};  // matmul_us over the matmul alone

  // What is measured, but for the phase.
  bool same_matmul(const OverlapRow& other) const {
    return m == other.m && n == other.n && k == other.k && dependent == other.dependent &&
           tf32 == other.tf32 && compute == other.compute && pause_ms == other.pause_ms;
  }
  friend bool operator==(const OverlapRow&, const OverlapRow&) = default;
};

}  // namespace tutti::cli
