#include "matmul/predict_gated.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <vector>

#include "base/units.hpp"
#include "matmul/own_arguments.hpp"

namespace tutti {
namespace {

// Half of what a launch costs comes before the first tile, half after the last.
constexpr double kEdgeUs = kMatmulLaunchUs / 2;
constexpr double kMostStolen = 0.9;  // of the time, by arriving data

// ---- Orders

// Rows of tiles of one width, swept as one.
struct GatedSegment {
  long long first_tile = 0;
  int first = 0;  // of GatedRows::order
  int width = 0;
  GroupedOrder order;
};

struct GatedSweep {
  std::size_t m = 0, cluster_rows = 0;
  std::vector<int> order;  // rows of clusters, as they come
  std::vector<GatedSegment> segments;

  GatedTile operator()(long long index) const {
    auto after = std::ranges::upper_bound(segments, index, {}, &GatedSegment::first_tile);
    const GatedSegment& segment = *std::prev(after);
    const TilePlace place = segment.order[static_cast<int>(index - segment.first_tile)];
    const auto row = static_cast<std::size_t>(
        order[static_cast<std::size_t>(segment.first) + static_cast<std::size_t>(place.row)]);
    return {.width = segment.width,
            .first_row = row * cluster_rows,
            .last_row = std::min(m, (row + 1) * cluster_rows)};
  }
};

// 0: the own shard; the larger, the later a shard arrives.
int position_of(const ArrivalPlan& plan, int shard) {
  return (shard - plan.own + plan.shards) % plan.shards;
}

// Shards are swept together whose positions have the same number.
int sweep_of(ArrivalOrder order, int position) {
  if (order != ArrivalOrder::kFrontier) return position;
  int sweep = 0;  // of 1, 1, 2, 4, ... shards
  for (int first = 1; first <= position; first *= 2) ++sweep;
  return sweep;
}

// A row of clusters comes with the last of its shards: the position of that.
int position_of_row(const GatedCall& call, std::size_t first, std::size_t last) {
  const ArrivalPlan& plan = call.plan;
  if (plan.order == ArrivalOrder::kPlain) return 0;
  const int end = chunk_of_row(plan, call.problem.m, last - 1) / plan.chunks;
  int position = 0;
  for (int shard = chunk_of_row(plan, call.problem.m, first) / plan.chunks; shard <= end; ++shard) {
    position = std::max(position, position_of(plan, shard));
  }
  return position;
}

// Appends `rows` rows of clusters, in one sweep, from `first` on.
void add_segment(const GatedCall& call, GatedSweep& sweep, int first, int rows) {
  const MatmulTiling& tiling = call.tiling;
  const int width = tiling.narrow != nullptr && first >= tiling.wide_rows ? 1 : 0;
  const MatmulTile& tile = width == 0 ? *tiling.tile : *tiling.narrow;
  long long before = 0;
  if (!sweep.segments.empty()) {
    const GatedSegment& last = sweep.segments.back();
    before = last.first_tile + last.order.count();
  }
  const int group = std::max(1, kMatmulGroupRows / static_cast<int>(sweep.cluster_rows));
  sweep.segments.push_back(
      {.first_tile = before,
       .first = first,
       .width = width,
       .order = {.rows = rows,
                 .columns = static_cast<int>(columns_of_tiles(tile, call.problem)),
                 .group = group}});
}

GatedSweep sweep_rows(const GatedCall& call) {
  const MatmulTile& tile = *call.tiling.tile;
  const std::size_t m = call.problem.m;
  GatedSweep sweep{.m = m,
                   .cluster_rows = static_cast<std::size_t>(tile.m) *
                                   static_cast<std::size_t>(cluster_of(tile, m)),
                   .order = {},
                   .segments = {}};
  sweep.order.resize(ceil_div(m, sweep.cluster_rows));
  std::iota(sweep.order.begin(), sweep.order.end(), 0);
  std::vector<int> positions;
  for (std::size_t row = 0; row < sweep.order.size(); ++row) {
    positions.push_back(position_of_row(call, row * sweep.cluster_rows,
                                        std::min(m, (row + 1) * sweep.cluster_rows)));
  }
  const auto position = [&](int row) { return positions[static_cast<std::size_t>(row)]; };
  std::ranges::stable_sort(sweep.order, {}, position);
  const auto swept = [&](int at) {
    return sweep_of(call.plan.order, position(sweep.order[static_cast<std::size_t>(at)]));
  };
  const auto wide = [&](int at) { return at < call.tiling.wide_rows; };
  const int rows = static_cast<int>(sweep.order.size());
  for (int first = 0, next = 1; first < rows; first = next++) {
    const auto same = [&](int at) { return swept(at) == swept(first) && wide(at) == wide(first); };
    while (next < rows && same(next)) ++next;
    add_segment(call, sweep, first, next - first);
  }
  return sweep;
}

// ---- The simulation

struct GatedArrivals {
  std::vector<double> us;  // of each chunk; empty: all are there
  double last_us = 0;
  double stolen = 0;  // of the time until then
};

GatedArrivals arrivals_of(const ArrivalTrace* trace, double contention_us_per_megabyte) {
  GatedArrivals arrivals;
  if (trace == nullptr || trace->arrivals.empty()) return arrivals;
  const int chunks = trace->ranks * trace->chunks_per_shard;
  arrivals.us.resize(static_cast<std::size_t>(chunks));
  double megabytes = 0;
  for (const ArrivedChunk& each : trace->arrivals) {
    arrivals.us[static_cast<std::size_t>(each.chunk)] = static_cast<double>(each.ns) / 1e3;
    megabytes += static_cast<double>(each.bytes) / 1e6;
  }
  arrivals.last_us = trace->last_us();
  if (arrivals.last_us > 0) {
    arrivals.stolen =
        std::clamp(contention_us_per_megabyte * megabytes / arrivals.last_us, 0.0, kMostStolen);
  }
  return arrivals;
}

// When work that takes so long by itself ends.
double end_of(double start, double work, const GatedArrivals& arrivals) {
  if (start >= arrivals.last_us) return start + work;
  const double left = 1 - arrivals.stolen;
  const double done = (arrivals.last_us - start) * left;
  return work <= done ? start + work / left : arrivals.last_us + (work - done);
}

double ready_us(const GatedCall& call, const GatedTile& tile, const GatedArrivals& arrivals) {
  if (arrivals.us.empty()) return 0;
  const int last = chunk_of_row(call.plan, call.problem.m, tile.last_row - 1);
  double ready = 0;
  for (int chunk = chunk_of_row(call.plan, call.problem.m, tile.first_row); chunk <= last;
       ++chunk) {
    ready = std::max(ready, arrivals.us[static_cast<std::size_t>(chunk)]);
  }
  return ready;
}

// Of both widths.
using TileTimes = std::array<double, 2>;

TileTimes tile_times(const GatedCall& call, double factor) {
  const MatmulTile& wide = *call.tiling.tile;
  const MatmulTile& narrow = call.tiling.narrow == nullptr ? wide : *call.tiling.narrow;
  return {factor * matmul_tile_us(wide, call.problem),
          factor * matmul_tile_us(narrow, call.problem)};
}

double run_us(const GatedCall& call, const GatedGrid& grid, const TileTimes& times,
              const GatedArrivals& arrivals) {
  std::vector<double> ends(static_cast<std::size_t>(std::max(1, grid.clusters)), kEdgeUs);
  for (long long index = 0; index < grid.tiles; ++index) {
    const GatedTile tile = grid.tile(index);
    double& cluster = ends[static_cast<std::size_t>(index) % ends.size()];
    const double start = std::max(cluster, ready_us(call, tile, arrivals));
    cluster = end_of(start, times[static_cast<std::size_t>(tile.width)], arrivals);
  }
  return *std::ranges::max_element(ends) + kEdgeUs;
}

GatedGrid plain_grid(GatedCall call) {
  call.plan.order = ArrivalOrder::kPlain;
  return gated_grid(call);
}

}  // namespace

GatedGrid gated_grid(const GatedCall& call) {
  auto sweep = std::make_shared<const GatedSweep>(sweep_rows(call));
  const GatedSegment& last = sweep->segments.back();
  return {
      .clusters = std::max(1, call.multiprocessors / cluster_of(*call.tiling.tile, call.problem.m)),
      .tiles = last.first_tile + last.order.count(),
      .tile = [sweep](long long index) { return (*sweep)(index); }};
}

GatedPrediction predict_gated(const GatedCall& call, const ArrivalTrace* trace,
                              const GatedModel& model) {
  return predict_gated(call, gated_grid(call), trace, model);
}

GatedPrediction predict_gated(const GatedCall& call, const GatedGrid& grid,
                              const ArrivalTrace* trace, const GatedModel& model) {
  const GatedGrid plain = plain_grid(call);
  const double slower = kMatmulForecastMegahertz / model.megahertz;
  const TileTimes times = tile_times(call, slower * model.tile_factor);
  const GatedArrivals none;
  const double forecast_us = run_us(call, plain, tile_times(call, 1), none);
  const double at_clock_us = run_us(call, plain, tile_times(call, slower), none);
  const double matmul_us = run_us(call, plain, times, none);
  const double ordered_us = run_us(call, grid, times, none);
  const double gated_us = run_us(call, grid, times, arrivals_of(trace, 0));
  const double total_us =
      run_us(call, grid, times, arrivals_of(trace, model.contention_us_per_megabyte));
  return {.forecast_us = forecast_us,
          .clock_us = at_clock_us - forecast_us,
          .deficit_us = matmul_us - at_clock_us,
          .order_us = ordered_us - matmul_us,
          .gating_us = gated_us - ordered_us,
          .contention_us = total_us - gated_us};
}

double tile_factor_of(const GatedCall& call, double megahertz, double measured_us) {
  const double slower = kMatmulForecastMegahertz / megahertz;
  const double us = run_us(call, plain_grid(call), tile_times(call, slower), {});
  return std::max(0.0, measured_us - kMatmulLaunchUs) / (us - kMatmulLaunchUs);
}

}  // namespace tutti
