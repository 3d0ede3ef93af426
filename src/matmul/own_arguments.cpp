#include "matmul/own_arguments.hpp"

#include <algorithm>
#include <array>

#include "base/try.hpp"
#include "base/units.hpp"

namespace tutti {
namespace {

int to_int(std::size_t value) { return static_cast<int>(value); }

// Both blocks of a cluster load a half of B for both: of its rows where it is column-major, else of
// those of every square of 64 x 64.
TensorMapShape shape_of_b(const CheckedMatmul& call, std::size_t which, const MatmulTile& tile) {
  const MatmulProblem& problem = call.problem;
  const ProductShape& product = problem.product[which];
  const bool row_major = problem.b_layout == MatrixLayout::kRowMajor;
  return {.dtype = problem.dtype,
          .address = call.product[which].b,
          .columns = row_major ? product.n : problem.k,
          .rows = row_major ? problem.k : product.n,
          .leading = product.ldb,
          .box_columns = kMatmulTileK,
          .box_rows = (row_major ? kMatmulTileK : tile.n) / 2};
}

Status fill_products(CudaDriver& cuda, const CheckedMatmul& call, const MatmulTiling& tiling,
                     OwnMatmulArguments& arguments) {
  const MatmulProblem& problem = call.problem;
  const std::array<const MatmulTile*, 2> widths = {tiling.tile, tiling.narrow};
  GroupedOrder* const orders[] = {&arguments.order.wide, &arguments.order.narrow};
  for (std::size_t i = 0; i < static_cast<std::size_t>(problem.products); ++i) {
    OwnProductArguments& product = arguments.product[i];
    for (std::size_t width = 0; width < widths.size() && widths[width] != nullptr; ++width) {
      const MatmulTile& tile = *widths[width];
      TUTTI_TRY(cuda.encode_tensor_map(shape_of_b(call, i, tile), product.b[width]));
      product.first_column[width] = orders[width]->columns;
      orders[width]->columns +=
          to_int(ceil_div(problem.product[i].n, static_cast<std::size_t>(tile.n)));
    }
    product.c = call.product[i].c;
    product.bias = call.product[i].bias;
    product.ldc = static_cast<std::int64_t>(problem.product[i].ldc);
    product.n = to_int(problem.product[i].n);
  }
  return Status::ok();
}

}  // namespace

Status fill_own_arguments(CudaDriver& cuda, const CheckedMatmul& call, const MatmulTiling& tiling,
                          OwnMatmulArguments& arguments) {
  const MatmulProblem& problem = call.problem;
  const MatmulTile& tile = *tiling.tile;
  arguments.products = problem.products;
  arguments.m = to_int(problem.m);
  arguments.stages_of_k = to_int(ceil_div(problem.k, kMatmulTileK));
  arguments.cluster = cluster_of(tile, problem.m);
  arguments.stages = tile.stages;
  arguments.stage_bytes = static_cast<std::uint32_t>(
      matmul_stage_bytes(tile.m, tile.n, problem.b_layout == MatrixLayout::kRowMajor));
  arguments.columns[0] = tile.n;
  if (tiling.narrow != nullptr) arguments.columns[1] = tiling.narrow->n;
  const int cluster_rows = tile.m * arguments.cluster;
  const int rows = to_int(ceil_div(problem.m, static_cast<std::size_t>(cluster_rows)));
  const int group = std::max(1, kMatmulGroupRows / cluster_rows);
  arguments.order = {.wide = {.rows = tiling.wide_rows, .columns = 0, .group = group},
                     .narrow = {.rows = rows - tiling.wide_rows, .columns = 0, .group = group}};
  TUTTI_TRY(fill_products(cuda, call, tiling, arguments));
  return cuda.encode_tensor_map({.dtype = problem.dtype,
                                 .address = call.a,
                                 .columns = problem.k,
                                 .rows = problem.m,
                                 .leading = problem.lda,
                                 .box_columns = kMatmulTileK,
                                 .box_rows = tile.m},
                                arguments.a);
}

}  // namespace tutti
