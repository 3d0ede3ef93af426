// Which algorithm and tile a matmul takes: decided here and nowhere else, from values alone.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "matmul/forecast.hpp"
#include "matmul/problem.hpp"

namespace tutti {

enum class MatmulAlgorithm : std::uint8_t { kOwn, kCublasLt, kHost };
std::string_view to_string(MatmulAlgorithm algorithm);  // "own_matmul", ...

// What the choice knows of the machine.
struct MatmulMachine {
  Backend backend = Backend::kHost;  // where the matrices are
  int compute = 0;                   // 90: Hopper
  int multiprocessors = 0;
  std::string why_no_cublas_lt = {};  // empty: it is there
  bool own_kernels = false;           // compiled into this build
};

struct MatmulOptions {
  std::string_view algorithm = {}, tile = {};  // forced; empty: not
};

struct SelectedMatmul {
  MatmulAlgorithm algorithm = MatmulAlgorithm::kHost;
  const MatmulTile* tile = nullptr;  // of kOwn
  std::string why;
};

// Why the own kernel cannot run it; empty: it can.
std::string why_not_own(const MatmulProblem& problem, const MatmulMachine& machine);

// kUnsupported where nothing can run it, with the reason for each algorithm; kInvalidArgument for
// an unknown name.
Result<SelectedMatmul> select(const MatmulProblem& problem, const MatmulMachine& machine,
                              const MatmulOptions& options);

// For people.
std::string explain(const MatmulProblem& problem, const MatmulMachine& machine,
                    const MatmulOptions& options);

}  // namespace tutti
