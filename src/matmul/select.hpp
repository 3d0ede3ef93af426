// Which algorithm and tile a matmul takes: decided here and nowhere else, from values alone.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "matmul/forecast.hpp"
#include "matmul/problem.hpp"

namespace tutti {

enum class MatmulAlgorithm : std::uint8_t { kOwn, kCublasLt, kPlain, kHost };
inline constexpr std::array kAllMatmulAlgorithms = {
    MatmulAlgorithm::kOwn, MatmulAlgorithm::kCublasLt, MatmulAlgorithm::kPlain,
    MatmulAlgorithm::kHost};
std::string_view to_string(MatmulAlgorithm algorithm);  // "own_matmul", ...

// What the selection knows of the machine.
struct MatmulMachine {
  Backend backend = Backend::kHost;  // where the matrices are
  int compute = 0;                   // 90: Hopper
  int multiprocessors = 0;
  bool own_kernels = false;           // compiled into this build
  std::string why_no_cublas_lt = {};  // empty: it is installed
  // For explain(): "cuBLASLt 13.0.2", "OpenBLAS 0.3.21"; empty: not known.
  std::string cublas_lt = {}, host_library = {};
};

struct MatmulOptions {
  std::string_view algorithm = {}, tile = {};  // forced; empty: not
};

// The same, parsed. A tile without an algorithm forces own_matmul.
struct ForcedMatmul {
  std::optional<MatmulAlgorithm> algorithm;
  const MatmulTile* tile = nullptr;
  friend bool operator==(const ForcedMatmul&, const ForcedMatmul&) = default;
};
// kInvalidArgument: an unknown name, or a tile of an algorithm that has none.
Result<ForcedMatmul> parse(const MatmulOptions& options);

struct SelectedMatmul {
  MatmulAlgorithm algorithm = MatmulAlgorithm::kHost;
  MatmulTiling tiling = {};  // of kOwn; else without a tile
  // Of kCublasLt, for each product: which of the library's proposals; 0 is the library's choice.
  std::array<int, kMaxMatmulProducts> heuristic = {};
  std::string why = {};
};

// Why the algorithm cannot run it; empty: it can.
std::string why_not(MatmulAlgorithm algorithm, const MatmulProblem& problem,
                    const MatmulMachine& machine);

// own_matmul's tiles with the shortest predicted time. At least kMatmulCluster multiprocessors.
MatmulForecast fastest_tile(const MatmulProblem& problem, int multiprocessors);
// Those whose predicted time is at most so many times that of the fastest.
std::vector<MatmulTiling> fast_tilings(const MatmulProblem& problem, int multiprocessors,
                                       double times);

// Of a problem with at least one product. kUnsupported where the forced algorithm cannot run it.
Result<SelectedMatmul> select(const MatmulProblem& problem, const MatmulMachine& machine,
                              const ForcedMatmul& forced);

// "128x256x64, cluster 2x1, 4 stages", or where the last rows have narrower tiles "128x256x64, from
// row 15616 128x160x64, cluster 2x1, 4 stages"
std::string config_text(const MatmulTiling& tiling, std::size_t m);
// The same of own_matmul; of cublaslt_matmul "heuristic 1", counted from 1, or "heuristics 1, 3" of
// several products; else empty.
std::string config_text(const SelectedMatmul& selected, const MatmulProblem& problem);
// "own_matmul, 128x256x64, cluster 2x1, 4 stages"
std::string text_of(const SelectedMatmul& selected, const MatmulProblem& problem);

// For people. Of a problem with at least one product.
std::string explain(const MatmulProblem& problem, const MatmulMachine& machine,
                    const Result<SelectedMatmul>& selected);

}  // namespace tutti
