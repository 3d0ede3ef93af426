#include "matmul/predict_gated.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/units.hpp"
#include "some_problem.hpp"

namespace tutti {
namespace {

using test::problem_of;
using test::tile_named;

constexpr double kEdge = kMatmulLaunchUs / 2;
constexpr GatedModel kNoContention{.contention_us_per_megabyte = 0};

// Rows of clusters with one tile each: all tiles are 128x256, and a cluster has 256 rows.
GatedCall column_of_tiles(std::size_t rows, int clusters) {
  return {.problem = problem_of(256 * rows, {256}, 4096),
          .tiling = {&tile_named("128x256"), nullptr, static_cast<int>(rows)},
          .plan = {.shards = static_cast<int>(rows), .order = ArrivalOrder::kRotated},
          .multiprocessors = kMatmulCluster * clusters};
}

ArrivalTrace trace_of(const GatedCall& call, std::vector<ArrivedChunk> arrivals) {
  return {.machine = "",
          .ranks = call.plan.shards,
          .own = call.plan.own,
          .chunks_per_shard = call.plan.chunks,
          .arrivals = std::move(arrivals)};
}

double tile_us(const GatedCall& call) { return matmul_tile_us(*call.tiling.tile, call.problem); }

TEST(GatedPrediction, OfOpenFlagsIsTheWaveModels) {
  for (const std::size_t m : {100u, 4096u, 8192u, 5000u}) {
    for (const char* name : {"128x256", "256x128", "128x224"}) {
      const MatmulProblem problem = problem_of(m, {1792, 100}, 4096);
      const MatmulForecast cast = forecast(tile_named(name), problem, 132);
      const GatedCall call{.problem = problem,
                           .tiling = cast.tiling,
                           .plan = {.shards = 8, .order = ArrivalOrder::kPlain},
                           .multiprocessors = 132};
      const GatedPrediction said = predict_gated(call, nullptr, {});
      EXPECT_NEAR(said.total_us(), cast.microseconds, 1e-9) << m << " " << name;
      EXPECT_EQ(said.forecast_us, said.total_us());
    }
  }
}

TEST(GatedPrediction, ATileWaitsForItsChunk) {
  const GatedCall call = column_of_tiles(4, 2);
  const double tile = tile_us(call);
  ASSERT_GT(tile, 45);
  ASSERT_LT(tile, 55);
  // The second cluster begins with shard 1 at 5, and goes on with shard 3 at 60. The first begins
  // with its own, and goes on with shard 2 at 200.
  const ArrivalTrace trace = trace_of(call, {{1, 1, 1, 5000}, {3, 3, 1, 60000}, {2, 2, 1, 200000}});
  const GatedPrediction said = predict_gated(call, &trace, kNoContention);
  EXPECT_NEAR(said.total_us(), 200 + tile + kEdge, 1e-9);
  EXPECT_NEAR(said.matmul_us(), 2 * tile + kMatmulLaunchUs, 1e-9);
  EXPECT_NEAR(said.gating_us, 200 - tile - kEdge, 1e-9);
  EXPECT_EQ(said.order_us, 0);
  EXPECT_EQ(said.contention_us, 0);
}

TEST(GatedPrediction, ATileWaitsForEachKGroupWhenItGetsThere) {
  GatedCall call = column_of_tiles(2, 2);
  call.plan.k_groups = 4;
  const double tile = tile_us(call);
  // The first tile is the own one. The second computes its k-groups when they have come.
  const auto total = [&](std::vector<ArrivedChunk> arrivals) {
    ArrivalTrace trace = trace_of(call, std::move(arrivals));
    trace.k_groups = 4;
    return predict_gated(call, &trace, kNoContention).total_us();
  };
  EXPECT_NEAR(total({{4, 1, 1, 10000}, {5, 1, 1, 11000}, {6, 1, 1, 12000}, {7, 1, 1, 100000}}),
              100 + tile / 4 + kEdge, 1e-9);
  EXPECT_NEAR(total({{4, 1, 1, 10000}, {5, 1, 1, 60000}, {6, 1, 1, 61000}, {7, 1, 1, 62000}}),
              60 + 3 * tile / 4 + kEdge, 1e-9);
  EXPECT_NEAR(total({{4, 1, 1, 10000}, {5, 1, 1, 11000}, {6, 1, 1, 12000}, {7, 1, 1, 13000}}),
              10 + tile + kEdge, 1e-9);
}

TEST(GatedPrediction, GroupsOfShardsAreAsHighAsAWave) {
  const MatmulProblem problem = problem_of(4096, {1792}, 4096);
  const GatedCall call{.problem = problem,
                       .tiling = forecast(tile_named("128x256"), problem, 116).tiling,
                       .plan = {.shards = 8, .k_groups = 16},
                       .multiprocessors = 116};
  const ArrivalModel model = pulled_arrival_model(16);
  const auto fastest = fastest_by_k_groups(call, model);
  ASSERT_TRUE(fastest.is_ok()) << fastest.status().to_string();
  EXPECT_EQ(fastest->plan.shard_groups, 2);  // the own shard and 3 others fill a wave
  const auto us = [&](int groups) {
    GatedCall other = *fastest;
    other.plan.shard_groups = groups;
    const auto trace = modelled_arrival(other.plan, {.m = 4096, .bytes_per_row = 8192}, model, "");
    return predict_gated(other, &*trace, {}).total_us();
  };
  for (const int groups : {1, 3, 7}) EXPECT_LT(us(2), us(groups)) << groups;
}

TEST(GatedPrediction, WhatArrivesInTimeCostsNothing) {
  const GatedCall call = column_of_tiles(4, 2);
  const ArrivalTrace trace = trace_of(call, {{1, 1, 1, 1000}, {2, 2, 1, 45000}, {3, 3, 1, 45000}});
  EXPECT_EQ(predict_gated(call, &trace, kNoContention).gating_us, 0);
}

TEST(GatedPrediction, ATileOfTwoShardsWaitsForBoth) {
  GatedCall call = column_of_tiles(2, 2);
  call.plan.shards = 3;  // of 171 rows: the tiles have shards 0 and 1, and 1 and 2
  const ArrivalTrace trace = trace_of(call, {{1, 1, 1, 30000}, {2, 2, 1, 20000}});
  EXPECT_NEAR(predict_gated(call, &trace, kNoContention).total_us(), 30 + tile_us(call) + kEdge,
              1e-9);
}

TEST(GatedPrediction, DataThatArrivesSlowsTilesMeanwhile) {
  const GatedCall call = column_of_tiles(2, 1);
  // 20 MB in 40 us: with 0.1 us per MB, 5 % of this time.
  const ArrivalTrace trace = trace_of(call, {{1, 1, 20'000'000, 40000}});
  const GatedPrediction said = predict_gated(call, &trace, {.contention_us_per_megabyte = 0.1});
  EXPECT_NEAR(said.contention_us, 0.05 * (40 - kEdge), 1e-9);
  EXPECT_EQ(said.gating_us, 0);
  // A tile that ends before the last arrival is slowed as a whole.
  const ArrivalTrace slow = trace_of(call, {{1, 1, 250'000'000, 500000}});
  const GatedPrediction hidden = predict_gated(call, &slow, {.contention_us_per_megabyte = 0.1});
  EXPECT_NEAR(hidden.total_us(), 500 + tile_us(call) + kEdge, 1e-9);
  EXPECT_EQ(hidden.contention_us, 0);
}

TEST(GatedPrediction, TakesTheTimeApart) {
  GatedCall call = column_of_tiles(4, 2);
  const double tile = tile_us(call);
  const GatedModel model{.megahertz = 700, .tile_factor = 1.5, .contention_us_per_megabyte = 0};
  const GatedPrediction said = predict_gated(call, nullptr, model);
  EXPECT_NEAR(said.forecast_us, kMatmulLaunchUs + 2 * tile, 1e-9);
  EXPECT_NEAR(said.clock_us, 2 * tile, 1e-9);
  EXPECT_NEAR(said.deficit_us, 2 * tile, 1e-9);
  EXPECT_NEAR(tile_factor_of(call, 700, said.matmul_us()), 1.5, 1e-12);
}

TEST(GatedPrediction, AnOrderOfOnesOwnIsSimulated) {
  const GatedCall call = column_of_tiles(4, 2);
  GatedGrid grid = gated_grid(call);
  grid.tiles = 5;  // the last one once more, by the first cluster
  grid.tile = [tile = grid.tile](long long index) { return tile(std::min<long long>(index, 3)); };
  EXPECT_NEAR(predict_gated(call, grid, nullptr, kNoContention).order_us, tile_us(call), 1e-9);
}

TEST(GatedGrid, HasEveryTileOnce) {
  for (const ArrivalOrder order :
       {ArrivalOrder::kPlain, ArrivalOrder::kRotated, ArrivalOrder::kFrontier}) {
    for (const std::size_t m : {1u, 128u, 129u, 1000u, 4096u, 9001u}) {
      for (const int shards : {1, 3, 8, 16}) {
        const MatmulProblem problem = problem_of(m, {600, 50}, 64);
        const GatedCall call{.problem = problem,
                             .tiling = forecast(tile_named("128x256"), problem, 8).tiling,
                             .plan = {.shards = shards, .own = shards / 2, .order = order},
                             .multiprocessors = 8};
        const GatedGrid grid = gated_grid(call);
        std::map<std::size_t, long long> tiles;  // of each row
        std::map<std::size_t, int> width;
        for (long long index = 0; index < grid.tiles; ++index) {
          const GatedTile tile = grid.tile(index);
          ++tiles[tile.first_row];
          width[tile.first_row] = tile.width;
        }
        const std::size_t rows = cluster_of(*call.tiling.tile, m) == 1 ? 128 : 256;
        ASSERT_EQ(tiles.size(), ceil_div(m, rows));
        for (const auto& [row, count] : tiles) {
          const MatmulTile& tile = width[row] == 0 ? *call.tiling.tile : *call.tiling.narrow;
          ASSERT_EQ(row % rows, 0u);
          ASSERT_EQ(count, columns_of_tiles(tile, problem)) << m << " " << shards;
        }
      }
    }
  }
}

// The shard of each row of tiles, in order, of 8 shards with one row of tiles each.
std::vector<std::size_t> shards_in_order(ArrivalOrder order, int own) {
  GatedCall call = column_of_tiles(8, 1);
  call.plan.own = own;
  call.plan.order = order;
  const GatedGrid grid = gated_grid(call);
  std::vector<std::size_t> shards;
  for (long long index = 0; index < grid.tiles; ++index) {
    shards.push_back(grid.tile(index).first_row / 256);
  }
  return shards;
}

TEST(GatedGrid, BeginsWithTheOwnShard) {
  using Shards = std::vector<std::size_t>;
  EXPECT_EQ(shards_in_order(ArrivalOrder::kPlain, 3), (Shards{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(shards_in_order(ArrivalOrder::kRotated, 3), (Shards{3, 4, 5, 6, 7, 0, 1, 2}));
  EXPECT_EQ(shards_in_order(ArrivalOrder::kFrontier, 3), (Shards{3, 4, 5, 6, 7, 0, 1, 2}));
}

TEST(GatedGrid, FrontiersSweepGrowingGroupsOfShards) {
  GatedCall call = column_of_tiles(8, 1);
  call.problem.product[0].n = call.problem.product[0].ldb = call.problem.product[0].ldc = 512;
  call.plan.order = ArrivalOrder::kFrontier;
  const GatedGrid grid = gated_grid(call);
  std::vector<std::size_t> shards;
  for (long long index = 0; index < grid.tiles; ++index) {
    shards.push_back(grid.tile(index).first_row / 256);
  }
  // Of 1, 1, 2 and 4 shards, each swept over both columns.
  EXPECT_EQ(shards, (std::vector<std::size_t>{0, 0, 1, 1, 2, 3, 2, 3, 4, 5, 6, 7, 4, 5, 6, 7}));
}

TEST(GatedGrid, RowsOfTwoShardsComeWithTheLater) {
  GatedCall call = column_of_tiles(3, 1);
  call.plan = {.shards = 2, .own = 1, .order = ArrivalOrder::kRotated};  // of 384 rows
  const GatedGrid grid = gated_grid(call);
  EXPECT_EQ(grid.tile(0).first_row, 512u);
  EXPECT_EQ(grid.tile(1).first_row, 0u);  // shard 0 alone, then what has shards 0 and 1
  EXPECT_EQ(grid.tile(2).first_row, 256u);
}

}  // namespace
}  // namespace tutti
