// What one group of ranks measured of `tutti bench all_gather_matmul`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/all_gather_matmul/ranks/options.hpp"
#include "bench/measurement.hpp"
#include "bench/record.hpp"
#include "bench/supervisor.hpp"

namespace tutti::cli {

// A setting, as all ranks saw it.
struct GatherMatmulOutcome {
  std::vector<std::vector<GatherMatmulMeasurement>> ranks;  // of each its rows, in order
};

struct GatherMatmulEnd {
  std::vector<Skipped> skipped = {};  // as rank 0 told
  Supervision end = {};               // whether all settings were measured
};

// Tells of each setting as soon as every rank has measured it. A failure here is one to start at
// all.
Result<GatherMatmulEnd> measure_gather_matmuls(
    const GatherMatmulOptions& options, int ranks,
    const std::function<void(const GatherMatmulOutcome&)>& on_setting);

// A row per algorithm; the slowest rank of each sample counts. kMismatch where ranks did not
// measure the same.
Result<std::vector<Row>> rows_of(const GatherMatmulOutcome& outcome,
                                 const GatherMatmulOptions& options);

}  // namespace tutti::cli
