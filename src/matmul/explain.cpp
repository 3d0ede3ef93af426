#include <fmt/format.h>

#include <limits>

#include "base/units.hpp"
#include "matmul/select.hpp"

namespace tutti {
namespace {

std::string problem_text(const MatmulProblem& problem) {
  std::string columns;
  bool bias = false;
  for (int i = 0; i < problem.products; ++i) {
    const ProductShape& product = problem.product[static_cast<std::size_t>(i)];
    columns += fmt::format("{}{}", i == 0 ? "" : " + ", product.n);
    bias = bias || product.bias;
  }
  return fmt::format("matmul: M {}, N {}, K {}, {}, B {}-major{}, aligned to {} bytes", problem.m,
                     columns, problem.k, to_string(problem.dtype), to_string(problem.b_layout),
                     bias ? ", bias" : "", problem.alignment);
}

std::string machine_text(const MatmulMachine& machine) {
  if (machine.backend != Backend::kCuda) return "on the host";
  return fmt::format("on a GPU of compute capability {}.{} with {} SMs", machine.compute / 10,
                     machine.compute % 10, machine.multiprocessors);
}

std::string possible_text(MatmulAlgorithm algorithm, const MatmulMachine& machine) {
  switch (algorithm) {
    case MatmulAlgorithm::kCublasLt:
      return machine.cublas_lt.empty() ? "can run it" : "can run it: " + machine.cublas_lt;
    case MatmulAlgorithm::kHost:
      return machine.host_library.empty() ? "can run it" : "can run it: " + machine.host_library;
    case MatmulAlgorithm::kPlain:
      return "can run it; selected only if no other can";
    default:
      return "can run it";
  }
}

// A line for each algorithm; * marks the selected one.
std::string algorithms_text(const MatmulProblem& problem, const MatmulMachine& machine,
                            const Result<SelectedMatmul>& selected) {
  std::string text;
  for (const MatmulAlgorithm algorithm : kAllMatmulAlgorithms) {
    const std::string why = why_not(algorithm, problem, machine);
    const bool taken = selected.is_ok() && selected->algorithm == algorithm;
    text += fmt::format("  {} {:<15}  {}\n", taken ? '*' : ' ', to_string(algorithm),
                        why.empty() ? possible_text(algorithm, machine) : "cannot run it: " + why);
  }
  return text;
}

// "128x160 from 15616": the narrower tiles, and from which row on.
std::string then_text(const MatmulTiling& tiling, std::size_t m) {
  if (tiling.narrow == nullptr) return {};
  return fmt::format("{} from {}", tiling.narrow->name, narrow_from_row(tiling, m));
}

// What own_matmul is expected to take with each tile; * marks the selected one.
std::string tiles_text(const MatmulProblem& problem, const MatmulMachine& machine,
                       const MatmulTiling& selected) {
  std::string text =
      fmt::format("own_matmul's tiles, predicted at {:.0f} MHz:\n", kMatmulForecastMegahertz);
  text += fmt::format("    {:<7}  {:<18}  {:>8}  {:>6}  {:>7}  {:>10}  {:>7}\n", "tile", "then",
                      "tiles", "waves", "fill", "time", "TFLOP/s");
  const double flop = 2.0 * static_cast<double>(problem.m) *
                      static_cast<double>(problem.columns()) * static_cast<double>(problem.k);
  for (const MatmulTile& tile : kMatmulTiles) {
    const MatmulForecast cast = forecast(tile, problem, machine.multiprocessors);
    text += fmt::format("  {} {:<7}  {:<18}  {:>8}  {:>6}  {:>5.1f} %  {:>7.1f} us  {:>7.1f}\n",
                        cast.tiling == selected ? '*' : ' ', tile.name,
                        then_text(cast.tiling, problem.m), cast.tiles, cast.waves, 100 * cast.fill,
                        cast.microseconds, flop / cast.microseconds / 1e6);
  }
  return text;
}

}  // namespace

std::string explain(const MatmulProblem& problem, const MatmulMachine& machine,
                    const Result<SelectedMatmul>& selected) {
  std::string text = problem_text(problem) + ", " + machine_text(machine) + "\n";
  if (!selected.is_ok()) {
    text += "no plan: " + selected.status().message() + "\n";
  } else {
    text += fmt::format("plan: {}: {}\n", text_of(*selected, problem), selected->why);
  }
  text += algorithms_text(problem, machine, selected);
  const bool countable = problem.m <= std::numeric_limits<std::int32_t>::max();
  if (machine.multiprocessors < kMatmulCluster || problem.k == 0 || !countable) return text;
  return text + tiles_text(problem, machine, selected.is_ok() ? selected->tiling : MatmulTiling{});
}

}  // namespace tutti
