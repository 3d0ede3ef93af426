// `tutti explain matmul`.
#pragma once

#include <string>

#include "matmul/select.hpp"
#include "topology/topology.hpp"
#include "tutti/status.hpp"

namespace tutti::cli {

// The text of each option; empty: not given.
struct ExplainMatmulArguments {
  std::string m, n, k, dtype, layout, products, backend, gpu, algorithm, tile;
  bool bias = false, json = false;
};

struct MatmulQuestion {
  MatmulProblem problem;
  MatmulMachine machine;
  ForcedMatmul forced;
};

// What is asked, of `here` or of the machine that --gpu names, which has cuBLASLt, and whose tutti
// has the own kernels.
Result<MatmulQuestion> read_matmul_question(const ExplainMatmulArguments& arguments,
                                            const Machine& here);

int run_explain_matmul(const ExplainMatmulArguments& arguments);

}  // namespace tutti::cli
