#include "matmul/own.hpp"

#include <algorithm>

#include "base/try.hpp"
#include "base/units.hpp"
#include "matmul/kernel/arguments.hpp"
#include "matmul/kernel/kernels.hpp"

namespace tutti {
namespace {

// Tiles of so many rows run at one time, so that what they read of A and B is about the same.
constexpr int kGroupRows = 2048;

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

Status fill_products(CudaDriver& cuda, const CheckedMatmul& call, const MatmulTile& tile,
                     OwnMatmulArguments& arguments) {
  const MatmulProblem& problem = call.problem;
  for (std::size_t i = 0; i < static_cast<std::size_t>(problem.products); ++i) {
    OwnProductArguments& product = arguments.product[i];
    TUTTI_TRY(cuda.encode_tensor_map(shape_of_b(call, i, tile), product.b));
    product.c = call.product[i].c;
    product.bias = call.product[i].bias;
    product.ldc = static_cast<std::int64_t>(problem.product[i].ldc);
    product.n = to_int(problem.product[i].n);
    product.first_column = arguments.order.columns;
    arguments.order.columns +=
        to_int(ceil_div(problem.product[i].n, static_cast<std::size_t>(tile.n)));
  }
  return Status::ok();
}

Status fill(CudaDriver& cuda, const CheckedMatmul& call, const MatmulTile& tile,
            OwnMatmulArguments& arguments) {
  const MatmulProblem& problem = call.problem;
  arguments.products = problem.products;
  arguments.m = to_int(problem.m);
  arguments.stages_of_k = to_int(ceil_div(problem.k, kMatmulTileK));
  arguments.cluster = cluster_of(tile, problem.m);
  const int rows = tile.m * arguments.cluster;  // of a cluster
  arguments.order = {.rows = to_int(ceil_div(problem.m, static_cast<std::size_t>(rows))),
                     .columns = 0,
                     .group = std::max(1, kGroupRows / rows)};
  TUTTI_TRY(fill_products(cuda, call, tile, arguments));
  return cuda.encode_tensor_map({.dtype = problem.dtype,
                                 .address = call.a,
                                 .columns = problem.k,
                                 .rows = problem.m,
                                 .leading = problem.lda,
                                 .box_columns = kMatmulTileK,
                                 .box_rows = tile.m},
                                arguments.a);
}

}  // namespace

bool has_own_matmul() { return true; }

Status load_own_matmul(CudaDriver& cuda, const MatmulProblem& problem, const MatmulTile& tile) {
  const OwnKernel kernel = own_kernel(tile, problem.dtype, problem.b_layout);
  return cuda.load_kernel(kernel.function, kernel.shared_bytes);
}

Status run_own_matmul(CudaDriver& cuda, const CheckedMatmul& call, const MatmulTile& tile,
                      int multiprocessors, Stream stream) {
  const OwnKernel kernel = own_kernel(tile, call.problem.dtype, call.problem.b_layout);
  OwnMatmulArguments arguments;
  TUTTI_TRY(fill(cuda, call, tile, arguments));
  OpenGate gate;
  void* parameters[] = {&arguments, &gate};
  const int clusters = std::min(arguments.order.count(), multiprocessors / arguments.cluster);
  return cuda.launch({.kernel = kernel.function,
                      .blocks = clusters * arguments.cluster,
                      .threads = kOwnMatmulThreads,
                      .cluster = arguments.cluster,
                      .shared_bytes = kernel.shared_bytes,
                      .arguments = parameters,
                      .stream = stream});
}

}  // namespace tutti
