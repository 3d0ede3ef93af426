// The own kernel, started.
#pragma once

#include "drivers/cuda.hpp"
#include "matmul/problem.hpp"
#include "matmul/tiles.hpp"

namespace tutti {

// Whether this build has the kernels: nvcc compiled for sm_90a.
bool has_own_matmul();

// Loads what run_own_matmul() launches, on the current device: CUDA may wait for all running
// kernels before it loads one.
Status load_own_matmul(CudaDriver& cuda, const MatmulProblem& problem, const MatmulTiling& tiling);

// Enqueues `call` in `stream` on the current device, which has so many multiprocessors. Requires
// that why_not(kOwn) is empty, that load_own_matmul() was called, and m, n and k > 0.
Status run_own_matmul(CudaDriver& cuda, const CheckedMatmul& call, const MatmulTiling& tiling,
                      int multiprocessors, Stream stream);

}  // namespace tutti
