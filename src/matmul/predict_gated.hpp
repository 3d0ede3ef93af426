// How long a matmul takes whose A arrives while it runs: the persistent grid, simulated with the
// tile times of the wave model. Pure values.
#pragma once

#include <cstddef>
#include <functional>

#include "matmul/arrival_trace.hpp"
#include "matmul/forecast.hpp"
#include "matmul/gated.hpp"
#include "matmul/problem.hpp"

namespace tutti {

// What a cluster computes at one time.
struct GatedTile {
  int width = 0;                            // 0: wide, 1: narrow
  std::size_t first_row = 0, last_row = 0;  // of A that it reads: the last is not among them
};

// Tile `index` is of cluster index modulo `clusters`, which computes its tiles in this order.
struct GatedGrid {
  int clusters = 1;
  long long tiles = 0;
  std::function<GatedTile(long long index)> tile;
};

struct GatedCall {
  MatmulProblem problem;  // m, n and k > 0
  MatmulTiling tiling;
  ArrivalPlan plan;
  int multiprocessors = 0;  // at least kMatmulCluster; without those of pullers
};

// In the order that the plan names. A row of tiles whose rows are of several shards comes with the
// last of them.
GatedGrid gated_grid(const GatedCall& call);

// What the wave model does not know.
struct GatedModel {
  double megahertz = kMatmulForecastMegahertz;
  double tile_factor = 1;  // a tile's time over that of the wave model at this clock
  // That all tiles lose to data which arrives from other GPUs. A replay of flags alone has none.
  double contention_us_per_megabyte = 0.1;
};

// The time, taken apart: the sum of all is the total.
struct GatedPrediction {
  double forecast_us = 0;    // of the matmul alone, at kMatmulForecastMegahertz
  double clock_us = 0;       // more, at the model's clock
  double deficit_us = 0;     // more, by the model's tile factor
  double order_us = 0;       // more, in the order of the plan
  double gating_us = 0;      // more, since tiles wait for chunks: the wait that is exposed
  double contention_us = 0;  // more, by the data that arrives

  double matmul_us() const { return forecast_us + clock_us + deficit_us; }
  double total_us() const { return matmul_us() + order_us + gating_us + contention_us; }
};

// `trace`: of the plan's shards and chunks; null: all chunks are there beforehand.
GatedPrediction predict_gated(const GatedCall& call, const ArrivalTrace* trace,
                              const GatedModel& model);
// Likewise in an order of one's own.
GatedPrediction predict_gated(const GatedCall& call, const GatedGrid& grid,
                              const ArrivalTrace* trace, const GatedModel& model);

// With the groups of shards, and with narrow tiles or without, that are fastest where A arrives by
// k-groups as `model` says: groups are then about as high as what the multiprocessors compute at a
// time. What `call` has of both is replaced; its tile stays.
Result<GatedCall> fastest_by_k_groups(GatedCall call, const ArrivalModel& model);

// The tile factor with which the matmul alone takes `measured_us` at this clock.
double tile_factor_of(const GatedCall& call, double megahertz, double measured_us);

}  // namespace tutti
