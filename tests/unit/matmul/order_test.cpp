// What the kernel is told, followed on the host: which block computes what, with which B.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "base/units.hpp"
#include "fakes/fake_cuda.hpp"
#include "matmul/forecast.hpp"
#include "matmul/kernel/work.hpp"
#include "matmul/own_arguments.hpp"
#include "some_problem.hpp"
#include "support/check.hpp"

namespace tutti {
namespace {

using test::problem_of;
using test::require_ok;
using test::tile_named;

template <int kRows>
struct TilesWithRows {
  static constexpr int kM = kRows;
};

TileWork work_with(const MatmulTile& tile, const OwnMatmulArguments& arguments, int index,
                   int rank) {
  OpenGate::Cursor cursor;
  return tile.m == 256 ? work_of<TilesWithRows<256>>(arguments, OpenGate{}, cursor, {index, rank})
                       : work_of<TilesWithRows<128>>(arguments, OpenGate{}, cursor, {index, rank});
}

constexpr int kCellRows = 64, kCellColumns = 8;  // tiles consist of whole cells

// In how many tiles each cell of C is, for each product.
class CountedTiles {
 public:
  explicit CountedTiles(const MatmulProblem& problem)
      : rows_(static_cast<int>(ceil_div(problem.m, kCellRows))) {
    call_.problem = problem;
    for (int i = 0; i < problem.products; ++i) {
      const auto which = static_cast<std::size_t>(i);
      counts_.emplace_back(static_cast<std::size_t>(rows_) * problem.product[which].n /
                           kCellColumns);
      call_.product[which].b = counts_.back().data();
    }
  }

  // The number of tiles.
  int add(const MatmulTiling& tiling) {
    OwnMatmulArguments arguments;
    require_ok(fill_own_arguments(cuda_, call_, tiling, arguments));
    for (int index = 0; index < arguments.order.count(); ++index) {
      for (int rank = 0; rank < arguments.cluster; ++rank) {
        add(*tiling.tile, arguments, work_with(*tiling.tile, arguments, index, rank));
      }
    }
    return arguments.order.count() * arguments.cluster;
  }

  // The counts that there are, of all cells.
  std::set<int> all() const {
    std::set<int> all;
    for (const std::vector<int>& counts : counts_) all.insert(counts.begin(), counts.end());
    return all;
  }

 private:
  void add(const MatmulTile& tile, const OwnMatmulArguments& arguments, const TileWork& work) {
    const auto which = static_cast<std::size_t>(&work.product - arguments.product);
    const int columns = arguments.columns[work.width];
    // As the fake driver encodes it.
    const std::uint64_t* const b = work.product.b[work.width].words;
    EXPECT_EQ(b[0], reinterpret_cast<std::uintptr_t>(counts_[which].data()));
    EXPECT_EQ(2 * b[5], static_cast<std::uint64_t>(columns));
    EXPECT_EQ(work.row % kCellRows + work.column % kCellColumns, 0);
    const int row = work.row / kCellRows, column = work.column / kCellColumns;
    const int all_columns = work.product.n / kCellColumns;
    for (int y = row; y < std::min(row + tile.m / kCellRows, rows_); ++y) {
      for (int x = column; x < std::min(column + columns / kCellColumns, all_columns); ++x) {
        ++counts_[which][static_cast<std::size_t>(y * all_columns + x)];
      }
    }
  }

  FakeCuda cuda_{std::make_shared<FakeCudaWorld>(1)};
  int rows_ = 0;  // of cells
  CheckedMatmul call_;
  std::vector<std::vector<int>> counts_;
};

TEST(MatmulOrder, EachElementOfCIsInOneTile) {
  MatmulProblem problems[] = {problem_of(1, {8}, 64), problem_of(128, {1000}, 64),
                              problem_of(2500, {520}, 64), problem_of(2047, {8, 264, 776}, 64)};
  for (MatmulProblem& problem : problems) {
    problem.b_layout = MatrixLayout::kColumnMajor;
    for (const MatmulTile& tile : kMatmulTiles) {
      SCOPED_TRACE(testing::Message() << tile.name << ", M " << problem.m);
      CountedTiles counted(problem);
      const MatmulForecast cast = forecast(tile, problem, 132);
      EXPECT_EQ(counted.add(cast.tiling), cast.tiles);
      EXPECT_EQ(counted.all(), std::set<int>{1});
    }
  }
}

TEST(MatmulOrder, WhereverNarrowTilesBegin) {
  MatmulProblem problem = problem_of(4500, {8, 264, 776}, 64);  // 18 rows of clusters
  problem.b_layout = MatrixLayout::kColumnMajor;
  for (const char* narrow : {"128x240", "128x128", "128x112"}) {
    for (const int wide_rows : {1, 7, 8, 9, 17}) {
      SCOPED_TRACE(testing::Message() << narrow << " from " << wide_rows);
      CountedTiles counted(problem);
      counted.add({&tile_named("128x256"), &tile_named(narrow), wide_rows});
      EXPECT_EQ(counted.all(), std::set<int>{1});
    }
  }
}

}  // namespace
}  // namespace tutti
