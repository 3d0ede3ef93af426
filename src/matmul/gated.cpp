#include "matmul/gated.hpp"

#include <fmt/format.h>

#include "base/try.hpp"
#include "matmul/gated_arguments.hpp"
#include "matmul/own_launch.hpp"

namespace tutti {

Status load_gated_matmul(CudaDriver& cuda, const MatmulProblem& problem,
                         const MatmulTiling& tiling) {
  for (const auto& kernel_of : {own_gated_kernel, own_k_groups_kernel}) {
    const OwnKernel kernel = kernel_of(tiling.tile->m, problem.dtype, problem.b_layout);
    TUTTI_TRY(cuda.load_kernel(kernel.function, kernel.shared_bytes));
  }
  return Status::ok();
}

Status run_gated_matmul(CudaDriver& cuda, const GatedMatmul& matmul, int multiprocessors,
                        Stream stream) {
  TUTTI_TRY(check_arrival(matmul.call, matmul.arrival));
  const MatmulProblem& problem = matmul.call.problem;
  const bool by_rows = matmul.arrival.plan.k_groups == 1 && matmul.arrival.pull.pullers == 0;
  const OwnKernel kernel = (by_rows ? own_gated_kernel : own_k_groups_kernel)(
      matmul.tiling.tile->m, problem.dtype, problem.b_layout);
  OwnMatmulArguments arguments;
  KGroupGate gate;
  TUTTI_TRY(fill_gated_arguments(cuda, matmul, arguments, gate));
  if (multiprocessors < gate.pulled.pullers + kMatmulCluster) {
    return {
        StatusCode::kInvalidArgument,
        fmt::format("gated matmul: {} multiprocessors, of which {} bring A: too few to multiply",
                    multiprocessors, gate.pulled.pullers)};
  }
  const OwnLaunch launch{kernel, arguments, &gate, gate.sweep.count(), gate.pulled.pullers};
  return launch.enqueue(cuda, multiprocessors, stream);
}

}  // namespace tutti
