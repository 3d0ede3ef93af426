// What a row of `tutti bench all_gather_matmul` with several ranks says besides what a row of a
// matmul says.
#pragma once

#include <optional>
#include <string>

namespace tutti::cli {

struct GatheredRow {
  std::string pipeline = {};  // "put, 4 streams": how it was asked for; empty: no pipeline
  int calls = 1;              // of a sample, at least
  double host_us = 0;         // of the host for a call, p50 of the slowest rank; 0: not measured
  std::string alone = {};     // the fastest row of the matmul alone; empty: there is none
  // By p50; empty where the other was not measured.
  std::optional<double> speed_up = {};    // of speeds, over unfused
  std::optional<double> over_alone = {};  // of times, over the matmul alone
  std::optional<double> exposed_us = {};  // over the matmul alone, not below 0
  friend bool operator==(const GatheredRow&, const GatheredRow&) = default;
};

}  // namespace tutti::cli
