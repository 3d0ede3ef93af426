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

// In the order of kMatmulTiles; fitted to what docs/internals/performance_notes.md lists. 128x128
// waits for the L2: it reads half as much again per multiplication as 128x256.
constexpr std::array<TileCost, kMatmulTiles.size()> kTileCosts = {{
    {0.978, 0.978, 1.8},
    {0.970, 0.970, 1.8},
    {0.978, 0.978, 2.0},
    {0.980, 0.820, 1.5},
    {0.985, 0.985, 1.7},
    {0.850, 0.850, 2.0},
}};
constexpr double kLaunchUs = 3.5;  // until the first tile's products begin, and after the last

double tile_us(const MatmulTile& tile, const MatmulProblem& problem) {
  const TileCost& cost = kTileCosts[static_cast<std::size_t>(&tile - kMatmulTiles.data())];
  const double stage_flop = 2.0 * tile.m * tile.n * kMatmulTileK;
  const double efficiency =
      problem.b_layout == MatrixLayout::kRowMajor ? cost.with_row_major : cost.efficiency;
  const double stage_us = stage_flop / kDenseFlopPerClock / kMatmulForecastMegahertz / efficiency;
  return static_cast<double>(ceil_div(problem.k, kMatmulTileK)) * stage_us + cost.tile_us;
}

}  // namespace

MatmulForecast forecast(const MatmulTile& tile, const MatmulProblem& problem, int multiprocessors) {
  const auto tile_m = static_cast<std::size_t>(tile.m), tile_n = static_cast<std::size_t>(tile.n);
  const auto cluster = static_cast<std::size_t>(cluster_of(tile, problem.m));
  const std::size_t rows = round_up(ceil_div(problem.m, tile_m), cluster);
  std::size_t tiles = 0;
  for (int i = 0; i < problem.products; ++i) {
    tiles += rows * ceil_div(problem.product[static_cast<std::size_t>(i)].n, tile_n);
  }
  const std::size_t blocks = static_cast<std::size_t>(multiprocessors) / cluster * cluster;
  const std::size_t waves = ceil_div(tiles, blocks);
  const auto useful = static_cast<double>(problem.m) * static_cast<double>(problem.columns()) *
                      static_cast<double>(problem.k);
  const double room = static_cast<double>(waves * blocks) * tile.m * tile.n *
                      static_cast<double>(round_up(problem.k, kMatmulTileK));
  const double microseconds = kLaunchUs + static_cast<double>(waves) * tile_us(tile, problem);
  const double most =
      microseconds * multiprocessors * kDenseFlopPerClock * kMatmulForecastMegahertz;
  return {.tile = &tile,
          .tiles = static_cast<long long>(tiles),
          .waves = static_cast<long long>(waves),
          .fill = room > 0 ? useful / room : 0,
          .microseconds = microseconds,
          .utilisation = 2 * useful / most};
}

}  // namespace tutti
