#include "matmul/forecast.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/units.hpp"
#include "some_problem.hpp"

namespace tutti {
namespace {

using test::problem_of;
using test::tile_named;

TEST(MatmulForecast, CountsTilesAndWaves) {
  struct Expected {
    const char* tile;
    long long tiles, waves;
  };
  const auto expect = [](const MatmulProblem& problem, const std::vector<Expected>& all) {
    for (const Expected& each : all) {
      const MatmulForecast cast = forecast(tile_named(each.tile), problem, 132);
      EXPECT_EQ(cast.tiling.tile->name, each.tile);
      EXPECT_EQ(cast.tiles, each.tiles) << each.tile;
      EXPECT_EQ(cast.waves, each.waves) << each.tile;
    }
  };
  expect(problem_of(4096, {1792}, 4096), {{"128x256", 238, 2},
                                          {"256x128", 224, 2},
                                          {"128x224", 256, 2},
                                          {"128x208", 378, 3},
                                          {"128x192", 356, 3},
                                          {"128x128", 496, 4}});
  // Where one tile has all rows, a cluster is one block.
  expect(problem_of(1, {1792}, 4096), {{"128x256", 7, 1}, {"256x128", 14, 1}});
  // An odd last row of tiles has an empty partner in its cluster.
  expect(problem_of(300, {257}, 64), {{"128x256", 8, 1}, {"256x128", 6, 1}});
  // Products have tiles of their own.
  expect(problem_of(256, {100, 300}, 64), {{"128x256", 2 + 4, 1}, {"128x128", 2 + 6, 1}});
}

TEST(MatmulForecast, FillIsTheUsefulPartOfTheWaves) {
  const MatmulProblem whole = problem_of(132 * 128, {256}, 64);
  EXPECT_DOUBLE_EQ(forecast(tile_named("128x256"), whole, 132).fill, 1.0);
  EXPECT_DOUBLE_EQ(forecast(tile_named("128x256"), problem_of(132 * 128, {128}, 32), 132).fill,
                   0.25);
  EXPECT_DOUBLE_EQ(forecast(tile_named("128x256"), problem_of(66 * 128, {256}, 64), 132).fill, 0.5);
  // Clusters of two use an even number of SMs.
  EXPECT_DOUBLE_EQ(forecast(tile_named("128x256"), whole, 133).fill, 1.0);
}

TEST(MatmulForecast, TimeGrowsWithWavesAndK) {
  const MatmulTile& tile = tile_named("128x256");
  const auto time = [&](std::size_t m, std::size_t k) {
    return forecast(tile, problem_of(m, {256}, k), 132).microseconds;
  };
  constexpr std::size_t kWave = 132 * 128;
  // What a launch costs is paid once.
  EXPECT_GT(2 * time(kWave, 4096), time(2 * kWave, 4096));
  EXPECT_NEAR(time(3 * kWave, 4096) - time(2 * kWave, 4096),
              time(2 * kWave, 4096) - time(kWave, 4096), 1e-9);
  // 22 rows of clusters are 66 of the narrowest tiles: one wave.
  EXPECT_DOUBLE_EQ(time(kWave + 1, 4096), time(kWave + 22 * 256, 4096));
  EXPECT_LT(time(kWave + 1, 4096), time(kWave + 22 * 256 + 1, 4096));
  EXPECT_DOUBLE_EQ(time(kWave, 129), time(kWave, 192));
  // What a tile costs besides its stages is paid once.
  EXPECT_GT(time(kWave, 64), 0.5 * time(kWave, 128));
  EXPECT_NEAR(time(kWave, 192) - time(kWave, 128), time(kWave, 128) - time(kWave, 64), 1e-9);
}

// Of one wave of this tile, or several; it needs no narrower ones.
double microseconds_of(const MatmulTile& tile, MatmulProblem problem, std::size_t waves) {
  problem.m = waves * 132 * static_cast<std::size_t>(tile.m);
  problem.products = 1;
  problem.product[0].n = static_cast<std::size_t>(tile.n);
  return forecast(tile, problem, 132).microseconds;
}

double launch_microseconds(const MatmulProblem& problem) {
  const MatmulTile& tile = kMatmulTiles.front();
  return 2 * microseconds_of(tile, problem, 1) - microseconds_of(tile, problem, 2);
}

// The tiles of a problem, dealt to clusters of two blocks one by one, as the kernel does it.
class DealtTiles {
 public:
  DealtTiles(const MatmulTile& tile, const MatmulProblem& problem)
      : tile_(tile), problem_(problem), launch_(launch_microseconds(problem)) {
    for (const MatmulTile& each : kMatmulTiles) {
      costs_.push_back(microseconds_of(each, problem, 1) - launch_);
    }
    rows_ = static_cast<int>(ceil_div(problem.m, static_cast<std::size_t>(2 * tile.m)));
  }

  // Of the cluster that takes longest.
  double microseconds(const MatmulTiling& tiling) const {
    std::vector<double> clusters(66);
    std::size_t next = 0;
    for (int row = 0; row < rows_; ++row) {
      const MatmulTile& tile = row < tiling.wide_rows ? *tiling.tile : *tiling.narrow;
      for (int column = 0; column < columns_of(tile); ++column) {
        clusters[next++ % clusters.size()] += cost_of(tile);
      }
    }
    return launch_ + *std::max_element(clusters.begin(), clusters.end());
  }

  // Of all tilings where narrow tiles have at most three waves of wide ones.
  double least_microseconds() const {
    const int columns = columns_of(tile_), waves = (rows_ * columns + 65) / 66;
    double least = microseconds({&tile_, nullptr, rows_});
    for (const MatmulTile& narrow : kMatmulTiles) {
      if (narrow.m != tile_.m || narrow.n >= tile_.n) continue;
      for (int rows = std::max(1, (waves - 4) * 66 / columns + 1); rows < rows_; ++rows) {
        least = std::min(least, microseconds({&tile_, &narrow, rows}));
      }
    }
    return least;
  }

 private:
  int columns_of(const MatmulTile& tile) const {
    std::size_t columns = 0;
    for (int i = 0; i < problem_.products; ++i) {
      columns += ceil_div(problem_.product[static_cast<std::size_t>(i)].n,
                          static_cast<std::size_t>(tile.n));
    }
    return static_cast<int>(columns);
  }
  double cost_of(const MatmulTile& tile) const {
    return costs_[static_cast<std::size_t>(&tile - kMatmulTiles.data())];
  }

  const MatmulTile& tile_;
  const MatmulProblem& problem_;
  double launch_ = 0;
  std::vector<double> costs_;  // in the order of kMatmulTiles
  int rows_ = 0;               // of clusters
};

TEST(MatmulForecast, NarrowTilesFillTheLastWave) {
  MatmulProblem problem = problem_of(16384, {3584}, 8192);
  problem.b_layout = MatrixLayout::kColumnMajor;
  const MatmulForecast cast = forecast(tile_named("128x256"), problem, 132);
  // Each cluster has at most 11 wide tiles, and then 3 narrow ones.
  EXPECT_EQ(cast.tiling, (MatmulTiling{&tile_named("128x256"), &tile_named("128x224"), 51}));
  EXPECT_EQ(narrow_from_row(cast.tiling, 16384), 13056);
  EXPECT_EQ(cast.tiles, 2 * (51 * 14 + 13 * 16));
  EXPECT_EQ(cast.waves, 14);
  EXPECT_DOUBLE_EQ(cast.fill, 16384.0 * 3584 / (132 * 128 * (11 * 256 + 3 * 224)));
}

TEST(MatmulForecast, IsTheTimeOfTheSlowestClusterAndNoOtherCutIsFaster) {
  MatmulProblem problems[] = {problem_of(16384, {3584}, 8192), problem_of(4097, {1792}, 4096),
                              problem_of(5000, {1000, 2000, 72}, 200)};
  int cut = 0;
  for (MatmulProblem& problem : problems) {
    for (const MatrixLayout layout : {MatrixLayout::kRowMajor, MatrixLayout::kColumnMajor}) {
      problem.b_layout = layout;
      for (const MatmulTile& tile : kMatmulTiles) {
        const MatmulForecast cast = forecast(tile, problem, 132);
        const DealtTiles dealt(tile, problem);
        SCOPED_TRACE(testing::Message() << tile.name << ", M " << problem.m);
        EXPECT_NEAR(cast.microseconds, dealt.microseconds(cast.tiling), 1e-9);
        EXPECT_NEAR(cast.microseconds, dealt.least_microseconds(), 1e-9);
        cut += cast.tiling.narrow == nullptr ? 0 : 1;
      }
    }
  }
  EXPECT_GT(cut, 20);
}

}  // namespace
}  // namespace tutti
