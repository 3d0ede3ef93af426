// How long the own kernel takes with each tile: the wave model. Pure arithmetic.
//
// Tiles are dealt to clusters in turn, so the cluster that gets the first tile gets the most. Its
// tiles take k / 64 x time of a stage + time that a tile costs besides, where both times were
// measured per tile. Where the last wave would be nearly empty, the last rows are cut into narrower
// tiles, so that all clusters end at about the same time.
#pragma once

#include "matmul/problem.hpp"
#include "matmul/tiles.hpp"

namespace tutti {

inline constexpr double kMatmulForecastMegahertz = 1400;
// Until the first tile's products begin, and after the last.
inline constexpr double kMatmulLaunchUs = 3.5;

// How long a block, or both of a cluster, take for a tile at kMatmulForecastMegahertz. `tile` is
// one of kMatmulTiles.
double matmul_tile_us(const MatmulTile& tile, const MatmulProblem& problem);
// In a row of tiles, of all products together.
long long columns_of_tiles(const MatmulTile& tile, const MatmulProblem& problem);

struct MatmulForecast {
  MatmulTiling tiling;
  long long tiles = 0;      // of all products; an odd last row of tiles counts its empty partner
  long long waves = 0;      // tiles over blocks, rounded up
  double fill = 0;          // of useful multiplications among all that the waves have room for
  double microseconds = 0;  // predicted, at kMatmulForecastMegahertz
  double utilisation = 0;   // of the tensor cores of all SMs during this time
};

// With `tile`, which is one of kMatmulTiles, and the narrower ones that are best after it; at least
// kMatmulCluster multiprocessors.
MatmulForecast forecast(const MatmulTile& tile, const MatmulProblem& problem, int multiprocessors);

}  // namespace tutti
