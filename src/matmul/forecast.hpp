// How long the own kernel takes with each tile: the wave model. Pure arithmetic.
//
// Tiles are dealt to clusters in waves, and each wave takes as long as one tile. So the time is
// waves x (k / 64 x time of a stage + time that a tile costs besides), where both times were
// measured per tile.
#pragma once

#include "matmul/problem.hpp"
#include "matmul/tiles.hpp"

namespace tutti {

inline constexpr double kMatmulForecastMegahertz = 1400;

struct MatmulForecast {
  const MatmulTile* tile = nullptr;
  long long tiles = 0;      // of all products; an odd last row of tiles counts its empty partner
  long long waves = 0;      // tiles over blocks, rounded up
  double fill = 0;          // of useful multiplications among all that the waves have room for
  double microseconds = 0;  // predicted, at kMatmulForecastMegahertz
  double utilisation = 0;   // of the tensor cores of all SMs during this time
};

// `tile` is one of kMatmulTiles; at least kMatmulCluster multiprocessors.
MatmulForecast forecast(const MatmulTile& tile, const MatmulProblem& problem, int multiprocessors);

}  // namespace tutti
