#include "matmul/forecast.hpp"

#include <cmath>

#include "base/units.hpp"

namespace tutti {
namespace {

constexpr double kDenseFlopPerClock = 4096;  // of an SM of Hopper, in bf16 or fp16

// Of one SM at kMatmulForecastMegahertz.
struct TileCost {
  double efficiency = 0;      // of the tensor cores while a tile's stages pass
  double with_row_major = 0;  // likewise, where B is row-major
  double tile_us = 0;         // a tile's time besides: pipeline fill, epilogue
};

// In the order of kMatmulTiles; fitted to what docs/internals/performance_notes.md lists. Narrow
// tiles wait for the L2: 128x128 reads half as much again per multiplication as 128x256. A
// row-major B comes in squares of 64 columns, of which tiles of other widths use a part.
constexpr std::array<TileCost, kMatmulTiles.size()> kTileCosts = {{
    {0.978, 0.978, 1.8},
    {0.975, 0.975, 1.8},
    {0.972, 0.970, 2.0},
    {0.968, 0.966, 2.0},
    {0.965, 0.800, 1.7},
    {0.982, 0.980, 1.7},
    {0.945, 0.840, 1.7},
    {0.920, 0.800, 1.7},
    {0.860, 0.690, 1.7},
    {0.830, 0.830, 1.7},
    {0.780, 0.750, 1.7},
}};
// A problem on a machine, in tiles of clusters.
struct Grid {
  const MatmulProblem& problem;
  int multiprocessors = 0;
  long long clusters = 0;
  long long rows = 0;
  int blocks = 0;  // of a cluster

  MatmulForecast cut(const MatmulTiling& tiling) const;
};

MatmulForecast Grid::cut(const MatmulTiling& tiling) const {
  const MatmulTile& wide = *tiling.tile;
  const MatmulTile& narrow = tiling.narrow == nullptr ? wide : *tiling.narrow;
  const long long wide_tiles = tiling.wide_rows * columns_of_tiles(wide, problem);
  const long long tiles =
      wide_tiles + (rows - tiling.wide_rows) * columns_of_tiles(narrow, problem);
  const long long waves = ceil_div(tiles, clusters), wide_waves = ceil_div(wide_tiles, clusters);
  const auto narrow_waves = static_cast<double>(waves - wide_waves);
  const auto useful = static_cast<double>(problem.m) * static_cast<double>(problem.columns()) *
                      static_cast<double>(problem.k);
  const double room = (static_cast<double>(wide_waves) * wide.n + narrow_waves * narrow.n) *
                      wide.m * static_cast<double>(clusters * blocks) *
                      static_cast<double>(round_up(problem.k, kMatmulTileK));
  const double microseconds = kMatmulLaunchUs +
                              static_cast<double>(wide_waves) * matmul_tile_us(wide, problem) +
                              narrow_waves * matmul_tile_us(narrow, problem);
  const double most =
      microseconds * multiprocessors * kDenseFlopPerClock * kMatmulForecastMegahertz;
  return {.tiling = tiling,
          .tiles = tiles * blocks,
          .waves = waves,
          .fill = room > 0 ? useful / room : 0,
          .microseconds = microseconds,
          .utilisation = 2 * useful / most};
}

}  // namespace

double matmul_tile_us(const MatmulTile& tile, const MatmulProblem& problem) {
  const TileCost& cost = kTileCosts[static_cast<std::size_t>(&tile - kMatmulTiles.data())];
  const double stage_flop = 2.0 * tile.m * tile.n * kMatmulTileK;
  const double efficiency =
      problem.b_layout == MatrixLayout::kRowMajor ? cost.with_row_major : cost.efficiency;
  const double stage_us = stage_flop / kDenseFlopPerClock / kMatmulForecastMegahertz / efficiency;
  return static_cast<double>(ceil_div(problem.k, kMatmulTileK)) * stage_us + cost.tile_us;
}

long long columns_of_tiles(const MatmulTile& tile, const MatmulProblem& problem) {
  std::size_t columns = 0;
  for (int i = 0; i < problem.products; ++i) {
    columns +=
        ceil_div(problem.product[static_cast<std::size_t>(i)].n, static_cast<std::size_t>(tile.n));
  }
  return static_cast<long long>(columns);
}

MatmulForecast forecast(const MatmulTile& tile, const MatmulProblem& problem, int multiprocessors) {
  constexpr long long kLastWaves = 3;  // that narrow tiles may have instead
  const int blocks = cluster_of(tile, problem.m);
  const auto cluster_rows = static_cast<std::size_t>(tile.m * blocks);
  const Grid grid{problem, multiprocessors, multiprocessors / blocks,
                  static_cast<long long>(ceil_div(problem.m, cluster_rows)), blocks};
  MatmulForecast best = grid.cut({&tile, nullptr, static_cast<int>(grid.rows)});
  const long long columns = columns_of_tiles(tile, problem), all_waves = best.waves;
  for (const MatmulTile& narrow : kMatmulTiles) {
    if (narrow.m != tile.m || narrow.n >= tile.n) continue;
    for (long long full = all_waves - 1; full > 0 && full >= all_waves - kLastWaves; --full) {
      const long long rows = full * grid.clusters / columns;
      if (rows == 0) continue;
      const MatmulForecast next = grid.cut({&tile, &narrow, static_cast<int>(rows)});
      if (next.microseconds < best.microseconds) best = next;
    }
  }
  return best;
}

}  // namespace tutti
