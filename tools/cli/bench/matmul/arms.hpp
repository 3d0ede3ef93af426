// What is compared for one setting: calls of matmul(), and cuBLASLt by each of its heuristics.
#pragma once

#include <vector>

#include "bench/matmul/options.hpp"
#include "bench/matmul/sets.hpp"
#include "bench/measurement.hpp"

namespace tutti::cli {

struct MatmulArms {
  std::vector<MatmulArm> calls;       // of matmul(), each with its algorithm
  std::vector<MatmulArm> heuristics;  // of cuBLASLt: the fastest is what is compared with
  std::vector<Skipped> skipped;       // what cannot run here
};

// Of `sets`, which must outlive them. `cuda`: null on the host.
Result<MatmulArms> make_matmul_arms(CudaDriver* cuda, const MatmulBenchOptions& options,
                                    const MatmulSets& sets, int multiprocessors);

}  // namespace tutti::cli
