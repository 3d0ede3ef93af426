#include "matmul/gated.hpp"

#include <fmt/format.h>

#include "base/try.hpp"
#include "matmul/gated_arguments.hpp"
#include "matmul/own_launch.hpp"

namespace tutti {

Status load_gated_matmul(CudaDriver& cuda, const MatmulProblem& problem,
                         const MatmulTiling& tiling) {
  const OwnKernel kernel = own_gated_kernel(tiling.tile->m, problem.dtype, problem.b_layout);
  return cuda.load_kernel(kernel.function, kernel.shared_bytes);
}

Status run_gated_matmul(CudaDriver& cuda, const GatedMatmul& matmul, int multiprocessors,
                        Stream stream) {
  TUTTI_TRY(check_arrival(matmul.call, matmul.arrival));
  const MatmulProblem& problem = matmul.call.problem;
  const OwnKernel kernel = own_gated_kernel(matmul.tiling.tile->m, problem.dtype, problem.b_layout);
  OwnMatmulArguments arguments;
  ArrivalGate gate;
  TUTTI_TRY(fill_gated_arguments(cuda, matmul, arguments, gate));
  if (multiprocessors < gate.pullers() + kMatmulCluster) {
    return {
        StatusCode::kInvalidArgument,
        fmt::format("gated matmul: {} multiprocessors, of which {} bring A: too few to multiply",
                    multiprocessors, gate.pullers())};
  }
  const OwnLaunch launch{kernel, arguments, &gate, gate.sweep.count(), gate.pullers()};
  return launch.enqueue(cuda, multiprocessors, stream);
}

}  // namespace tutti
