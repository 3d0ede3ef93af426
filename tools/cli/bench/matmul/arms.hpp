// What is compared for one setting: calls of matmul(), and cuBLASLt by each of its heuristics.
#pragma once

#include <functional>
#include <vector>

#include "bench/matmul/options.hpp"
#include "bench/matmul/sets.hpp"
#include "bench/measurement.hpp"

namespace tutti::cli {

struct MatmulArms {
  std::vector<MatmulArm> calls;       // of matmul(), each with its algorithm
  std::vector<MatmulArm> heuristics;  // of cuBLASLt: the fastest is what is compared with
  std::vector<Skipped> skipped;       // what cannot run here
  // Elements of a set's C that this arm, which has just run, wrote otherwise than another arm;
  // null: they are compared with sums in fp64 alone.
  std::function<Result<Mismatches>(const MatmulArm& arm, std::size_t set)> compare = {};
  // Fills what operations write besides C, so that nothing of another one is left; null: nothing.
  std::function<Status()> poison = {};
  // What failed on the device without a call that failed; null: nothing can.
  std::function<Status()> ended = {};
};

// Of `sets`, which must outlive them. `cuda`: null on the host.
Result<MatmulArms> make_matmul_arms(CudaDriver* cuda, const MatmulBenchOptions& options,
                                    const MatmulSets& sets, int multiprocessors);
// Adds an arm for each of cuBLASLt's heuristics, or why it cannot run.
void add_cublas_lt_arms(CudaDriver& cuda, const MatmulSets& sets, MatmulArms& arms);

}  // namespace tutti::cli
