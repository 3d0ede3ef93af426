#include "matmul/predict_gated.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <vector>

#include "base/try.hpp"
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
int sweep_of(const ArrivalPlan& plan, int position) {
  if (position == 0) return 0;
  if (plan.order != ArrivalOrder::kFrontier) return 1 + groups_of(plan).at(position);
  int sweep = 0;  // of 1, 1, 2, 4, ... shards
  for (int first = 1; first <= position; first *= 2) ++sweep;
  return sweep;
}

// A row of clusters comes with the last of its shards: the position of that.
int position_of_row(const GatedCall& call, std::size_t first, std::size_t last) {
  const ArrivalPlan& plan = call.plan;
  if (plan.order == ArrivalOrder::kPlain) return 0;
  const auto shard_of = [&](std::size_t row) {
    return chunk_of_row(plan, call.problem.m, row) / plan.flags_of_shard();
  };
  int position = 0;
  for (int shard = shard_of(first); shard <= shard_of(last - 1); ++shard) {
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
    return sweep_of(call.plan, position(sweep.order[static_cast<std::size_t>(at)]));
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
  arrivals.us.resize(static_cast<std::size_t>(trace->plan(ArrivalOrder::kRotated).flags()));
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

double ready_us(const GatedCall& call, const GatedTile& tile, int k_group,
                const GatedArrivals& arrivals) {
  if (arrivals.us.empty()) return 0;
  const int last = chunk_of_row(call.plan, call.problem.m, tile.last_row - 1);
  double ready = 0;
  for (int flag = chunk_of_row(call.plan, call.problem.m, tile.first_row); flag <= last;
       flag += call.plan.k_groups) {
    ready = std::max(ready, arrivals.us[static_cast<std::size_t>(flag + k_group)]);
  }
  return ready;
}

// When a tile ends that takes so long and may begin at `start`: it waits for each k-group when its
// products get there.
double tile_end_us(const GatedCall& call, const GatedTile& tile, double start, double tile_us,
                   const GatedArrivals& arrivals) {
  const std::size_t k = call.problem.k, of_group = k_group_columns(call.plan, k);
  double done = 0, at = start;  // of the tile's time
  for (int group = 0; group < call.plan.k_groups; ++group) {
    const std::size_t begin = static_cast<std::size_t>(group) * of_group;
    if (begin >= k) break;  // this k-group and those after it have no columns
    const std::size_t end = std::min(k, begin + of_group);
    const double until = tile_us * static_cast<double>(end) / static_cast<double>(k);
    at = end_of(std::max(at, ready_us(call, tile, group, arrivals)), until - done, arrivals);
    done = until;
  }
  return at;
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
    cluster =
        tile_end_us(call, tile, cluster, times[static_cast<std::size_t>(tile.width)], arrivals);
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

Result<GatedCall> fastest_by_k_groups(GatedCall call, const ArrivalModel& model) {
  const MatmulProblem& problem = call.problem;
  const MatmulForecast cut = forecast(*call.tiling.tile, problem, call.multiprocessors);
  const std::size_t rows = ceil_div(
      problem.m,
      static_cast<std::size_t>(cut.tiling.tile->m * cluster_of(*cut.tiling.tile, problem.m)));
  const MatmulTiling uncut{cut.tiling.tile, nullptr, static_cast<int>(rows)};
  const GatheredRows gathered{.m = problem.m, .bytes_per_row = problem.k * size_of(problem.dtype)};
  GatedCall best = call;
  double best_us = 0;
  for (call.plan.shard_groups = 1; call.plan.shard_groups < std::max(call.plan.shards, 2);
       ++call.plan.shard_groups) {
    TUTTI_ASSIGN(const ArrivalTrace trace, modelled_arrival(call.plan, gathered, model, ""));
    for (const MatmulTiling& tiling : {uncut, cut.tiling}) {
      call.tiling = tiling;
      const double us = predict_gated(call, &trace, {}).total_us();
      if (best_us != 0 && us >= best_us) continue;
      best_us = us;
      best = call;
    }
  }
  return best;
}

double tile_factor_of(const GatedCall& call, double megahertz, double measured_us) {
  const double slower = kMatmulForecastMegahertz / megahertz;
  const double us = run_us(call, plain_grid(call), tile_times(call, slower), {});
  return std::max(0.0, measured_us - kMatmulLaunchUs) / (us - kMatmulLaunchUs);
}

}  // namespace tutti
