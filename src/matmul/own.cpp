#include "matmul/own.hpp"

#include "base/try.hpp"
#include "matmul/kernel/work.hpp"
#include "matmul/own_arguments.hpp"
#include "matmul/own_launch.hpp"

namespace tutti {

bool has_own_matmul() { return true; }

Status load_own_matmul(CudaDriver& cuda, const MatmulProblem& problem, const MatmulTiling& tiling) {
  const OwnKernel kernel = own_kernel(tiling.tile->m, problem.dtype, problem.b_layout);
  return cuda.load_kernel(kernel.function, kernel.shared_bytes);
}

Status run_own_matmul(CudaDriver& cuda, const CheckedMatmul& call, const MatmulTiling& tiling,
                      int multiprocessors, Stream stream) {
  const OwnKernel kernel = own_kernel(tiling.tile->m, call.problem.dtype, call.problem.b_layout);
  OwnMatmulArguments arguments;
  TUTTI_TRY(fill_own_arguments(cuda, call, tiling, arguments));
  OpenGate gate;
  const int tiles = arguments.order.count();
  return OwnLaunch{kernel, arguments, &gate, tiles}.enqueue(cuda, multiprocessors, stream);
}

}  // namespace tutti
