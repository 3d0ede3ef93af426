// What the own kernel is told of a call.
#pragma once

#include "drivers/cuda.hpp"
#include "matmul/kernel/arguments.hpp"
#include "matmul/problem.hpp"
#include "matmul/tiles.hpp"

namespace tutti {

// Tiles of so many rows run at one time, so that what they read of A and B is about the same.
inline constexpr int kMatmulGroupRows = 2048;

// Fills new arguments. Requires what run_own_matmul() requires.
Status fill_own_arguments(CudaDriver& cuda, const CheckedMatmul& call, const MatmulTiling& tiling,
                          OwnMatmulArguments& arguments);

}  // namespace tutti
