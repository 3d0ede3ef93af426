#include "matmul/select.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/names.hpp"
#include "base/try.hpp"
#include "drivers/tensor_map.hpp"

namespace tutti {
namespace {

constexpr Name<MatmulAlgorithm> kAlgorithms[] = {{MatmulAlgorithm::kOwn, "own_matmul"},
                                                 {MatmulAlgorithm::kCublasLt, "cublaslt_matmul"},
                                                 {MatmulAlgorithm::kPlain, "plain_matmul"},
                                                 {MatmulAlgorithm::kHost, "host_matmul"}};

constexpr int kHopper = 90;
// Coordinates and numbers of tiles have 32 bits, and tiles may reach beyond the matrix.
constexpr std::size_t kMostInt = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t kMostOwnCoordinate = kMostInt - 511;

// Where own_matmul can run, it is selected from these on; below, cuBLASLt is expected to be faster.
// With few rows, memory decides, of which the forecast knows nothing. The utilisation is low
// although the waves are full where a launch and the epilogues take long against the products,
// which is so with one or two waves and a small K. Of the rules of this form, this one has the
// highest geometric mean over results/h100x1/matmul.json.
constexpr std::size_t kLeastOwnRows = 512;
constexpr double kLeastOwnFill = 0.955;
constexpr double kLeastOwnUtilisation = 0.855;

std::string why_not_own(const MatmulProblem& problem, const MatmulMachine& machine) {
  if (machine.compute != kHopper || machine.multiprocessors < kMatmulCluster) {
    return fmt::format("it runs on Hopper (compute capability 9.0), and this GPU has {}.{}",
                       machine.compute / 10, machine.compute % 10);
  }
  if (!machine.own_kernels) return "this build was not compiled for architecture 90a";
  if (problem.dtype != DataType::kBfloat16 && problem.dtype != DataType::kFloat16) {
    return fmt::format("it multiplies bf16 and fp16, not {}", to_string(problem.dtype));
  }
  if (problem.k == 0) return "K is 0, so nothing is multiplied";
  if (problem.alignment < kTmaAlignment) {
    return fmt::format(
        "TMA needs addresses and leading dimensions that are multiples of {} bytes, and here they "
        "are multiples of {}",
        kTmaAlignment, problem.alignment);
  }
  std::size_t most = std::max(problem.m, problem.k), distance = problem.lda;
  for (int i = 0; i < problem.products; ++i) {
    const ProductShape& product = problem.product[static_cast<std::size_t>(i)];
    most = std::max(most, product.n);
    distance = std::max({distance, product.ldb, product.ldc});
  }
  if (most > kMostOwnCoordinate) {
    return fmt::format("it takes at most {} rows and columns", kMostOwnCoordinate);
  }
  const MatmulForecast smallest = forecast(kMatmulTiles.back(), problem, machine.multiprocessors);
  if (smallest.tiles > static_cast<long long>(kMostInt)) {
    return fmt::format("it computes at most {} tiles", kMostInt);
  }
  if (distance * size_of(problem.dtype) > kMostTmaDistanceBytes) {
    return "TMA takes leading dimensions of less than 2^40 bytes";
  }
  return {};
}

std::string excluded_text(MatmulAlgorithm algorithm, std::string_view why) {
  return fmt::format("{}: {}", to_string(algorithm), why);
}

// "128x256" or "128x256, then 128x160"
std::string names_of(const MatmulTiling& tiling) {
  std::string names(tiling.tile->name);
  if (tiling.narrow != nullptr) names += fmt::format(", then {},", tiling.narrow->name);
  return names;
}

SelectedMatmul own(const MatmulForecast& fastest, std::string why) {
  return {.algorithm = MatmulAlgorithm::kOwn, .tiling = fastest.tiling, .why = std::move(why)};
}

SelectedMatmul cublas_lt(std::string why) {
  return {.algorithm = MatmulAlgorithm::kCublasLt, .why = std::move(why)};
}

// Of those that can run it.
SelectedMatmul select_on_gpu(const MatmulProblem& problem, const MatmulMachine& machine) {
  constexpr auto kOwn = MatmulAlgorithm::kOwn, kCublasLt = MatmulAlgorithm::kCublasLt;
  const std::string no_own = why_not(kOwn, problem, machine);
  const std::string no_cublas_lt = why_not(kCublasLt, problem, machine);
  if (!no_own.empty() && !no_cublas_lt.empty()) {
    return {.algorithm = MatmulAlgorithm::kPlain,
            .why = excluded_text(kOwn, no_own) + "; " + excluded_text(kCublasLt, no_cublas_lt)};
  }
  if (!no_own.empty()) return cublas_lt(excluded_text(kOwn, no_own));
  const MatmulForecast fastest = fastest_tile(problem, machine.multiprocessors);
  if (!no_cublas_lt.empty()) return own(fastest, excluded_text(kCublasLt, no_cublas_lt));
  if (problem.m < kLeastOwnRows) {
    return cublas_lt(
        fmt::format("M is {}, and own_matmul is selected from {} on", problem.m, kLeastOwnRows));
  }
  const bool suffices =
      fastest.fill >= kLeastOwnFill && fastest.utilisation >= kLeastOwnUtilisation;
  const std::string why = fmt::format(
      "own_matmul with {} fills {:.1f} % of its waves and would use {:.1f} % of the "
      "tensor cores; {:.1f} % and {:.1f} % {}",
      names_of(fastest.tiling), 100 * fastest.fill, 100 * fastest.utilisation, 100 * kLeastOwnFill,
      100 * kLeastOwnUtilisation, suffices ? "suffice" : "are required");
  return suffices ? own(fastest, why) : cublas_lt(why);
}

}  // namespace

std::string_view to_string(MatmulAlgorithm algorithm) {
  return name_of<MatmulAlgorithm>(kAlgorithms, algorithm);
}

Result<ForcedMatmul> parse(const MatmulOptions& options) {
  ForcedMatmul forced;
  if (!options.algorithm.empty()) {
    TUTTI_ASSIGN(
        forced.algorithm,
        parse_name<MatmulAlgorithm>(kAlgorithms, {}, "algorithm of a matmul", options.algorithm));
  }
  if (options.tile.empty()) return forced;
  if (forced.algorithm && *forced.algorithm != MatmulAlgorithm::kOwn) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("tile '{}': {} has no tiles; own_matmul has", options.tile,
                              to_string(*forced.algorithm)));
  }
  forced.algorithm = MatmulAlgorithm::kOwn;
  std::array<Name<const MatmulTile*>, kMatmulTiles.size()> tiles;
  std::transform(kMatmulTiles.begin(), kMatmulTiles.end(), tiles.begin(),
                 [](const MatmulTile& tile) {
                   return Name<const MatmulTile*>{&tile, tile.name};
                 });
  TUTTI_ASSIGN(forced.tile, parse_name<const MatmulTile*>(tiles, {}, "tile", options.tile));
  return forced;
}

std::string why_not(MatmulAlgorithm algorithm, const MatmulProblem& problem,
                    const MatmulMachine& machine) {
  const bool for_host = algorithm == MatmulAlgorithm::kHost;
  if (for_host && machine.backend == Backend::kCuda) return "the matrices are on a GPU";
  if (!for_host && machine.backend != Backend::kCuda) return "the matrices are on the host";
  if (algorithm == MatmulAlgorithm::kOwn) return why_not_own(problem, machine);
  if (algorithm != MatmulAlgorithm::kCublasLt) return {};
  if (problem.k == 0) return "K is 0, so nothing is multiplied";
  return machine.why_no_cublas_lt;
}

MatmulForecast fastest_tile(const MatmulProblem& problem, int multiprocessors) {
  MatmulForecast fastest = forecast(kMatmulTiles.front(), problem, multiprocessors);
  for (const MatmulTile& tile : kMatmulTiles) {
    const MatmulForecast next = forecast(tile, problem, multiprocessors);
    if (next.microseconds < fastest.microseconds) fastest = next;
  }
  return fastest;
}

std::vector<MatmulTiling> fast_tilings(const MatmulProblem& problem, int multiprocessors,
                                       double times) {
  const double most = times * fastest_tile(problem, multiprocessors).microseconds;
  std::vector<MatmulTiling> tilings;
  for (const MatmulTile& tile : kMatmulTiles) {
    const MatmulForecast each = forecast(tile, problem, multiprocessors);
    if (each.microseconds <= most) tilings.push_back(each.tiling);
  }
  return tilings;
}

Result<SelectedMatmul> select(const MatmulProblem& problem, const MatmulMachine& machine,
                              const ForcedMatmul& forced) {
  if (forced.algorithm) {
    const std::string why = why_not(*forced.algorithm, problem, machine);
    if (!why.empty()) {
      return Status(StatusCode::kUnsupported, excluded_text(*forced.algorithm, why));
    }
    SelectedMatmul selected{.algorithm = *forced.algorithm, .why = "the call names it"};
    if (*forced.algorithm != MatmulAlgorithm::kOwn) return selected;
    const int multiprocessors = machine.multiprocessors;
    selected.tiling = forced.tile == nullptr
                          ? fastest_tile(problem, multiprocessors).tiling
                          : forecast(*forced.tile, problem, multiprocessors).tiling;
    return selected;
  }
  if (machine.backend == Backend::kCuda) return select_on_gpu(problem, machine);
  return SelectedMatmul{.algorithm = MatmulAlgorithm::kHost, .why = "the matrices are on the host"};
}

std::string config_text(const MatmulTiling& tiling, std::size_t m) {
  const MatmulTile& tile = *tiling.tile;
  std::string text = fmt::format("{}x{}", tile.name, kMatmulTileK);
  if (tiling.narrow != nullptr) {
    text += fmt::format(", from row {} {}x{}", narrow_from_row(tiling, m), tiling.narrow->name,
                        kMatmulTileK);
  }
  return fmt::format("{}, cluster {}x1, {} stages", text, cluster_of(tile, m), tile.stages);
}

std::string config_text(const SelectedMatmul& selected, const MatmulProblem& problem) {
  if (selected.tiling.tile != nullptr) return config_text(selected.tiling, problem.m);
  if (selected.algorithm != MatmulAlgorithm::kCublasLt) return {};
  std::string text = problem.products == 1 ? "heuristic" : "heuristics";
  for (int i = 0; i < problem.products; ++i) {
    text += fmt::format("{} {}", i == 0 ? "" : ",",
                        selected.heuristic[static_cast<std::size_t>(i)] + 1);
  }
  return text;
}

std::string text_of(const SelectedMatmul& selected, const MatmulProblem& problem) {
  const std::string config = config_text(selected, problem);
  return fmt::format("{}{}{}", to_string(selected.algorithm), config.empty() ? "" : ", ", config);
}

}  // namespace tutti
