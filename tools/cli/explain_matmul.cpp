#include "explain_matmul.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/try.hpp"
#include "bench/matmul/shapes.hpp"
#include "drivers/cuda.hpp"
#include "drivers/nvml.hpp"
#include "drivers/optional_libraries.hpp"
#include "exit_code.hpp"
#include "known_gpus.hpp"
#include "matmul/host.hpp"
#include "matmul/own.hpp"
#include "parse.hpp"
#include "tell.hpp"

namespace tutti::cli {
namespace {

Result<std::size_t> extent_of(std::string_view option, const std::string& text) {
  constexpr std::size_t kUsual = 8192;
  if (text.empty()) return kUsual;
  TUTTI_ASSIGN(const int extent, parse_int(option, text, {1, kMostExtent}));
  return static_cast<std::size_t>(extent);
}

// The matmul of matrices that begin at multiples of 256 bytes and have no gaps.
Result<MatmulProblem> problem_of(const ExplainMatmulArguments& a, Backend backend) {
  alignas(256) static std::byte anywhere[256];  // never read or written
  MatmulProduct product{.b = anywhere, .c = anywhere, .bias = a.bias ? anywhere : nullptr};
  TUTTI_ASSIGN(product.n, extent_of("--n", a.n));
  Matmul call{.a = anywhere, .b = product.b, .c = product.c, .bias = product.bias, .n = product.n};
  TUTTI_ASSIGN(call.m, extent_of("--m", a.m));
  TUTTI_ASSIGN(call.k, extent_of("--k", a.k));
  const bool cuda = backend == Backend::kCuda;
  TUTTI_ASSIGN(call.dtype, parse_data_type(!a.dtype.empty() ? a.dtype : cuda ? "bf16" : "fp32"));
  const auto layout = parse_matrix_layout(a.layout.empty() ? "row" : a.layout);
  if (!layout.is_ok()) return layout.status().with_context("--layout");
  call.b_layout = *layout;
  int products = 1;
  if (!a.products.empty()) {
    constexpr auto kMost = static_cast<long>(kMaxMatmulProducts);
    TUTTI_ASSIGN(products, parse_int("--products", a.products, {1, kMost}));
  }
  const std::vector<MatmulProduct> more(static_cast<std::size_t>(products - 1), product);
  call.more = more;
  TUTTI_ASSIGN(const CheckedMatmul checked, check(call));
  return checked.problem;
}

Result<MatmulMachine> machine_of(const ExplainMatmulArguments& a, const Machine& here) {
  Backend backend = Backend::kAuto;
  if (!a.backend.empty()) {
    TUTTI_ASSIGN(backend, parse_backend(a.backend));
  }
  if (!a.gpu.empty()) {
    if (backend == Backend::kHost) return wrong("--gpu describes a machine for --backend cuda");
    TUTTI_ASSIGN(const KnownGpu gpu, find_gpu(a.gpu));
    return MatmulMachine{.backend = Backend::kCuda,
                         .compute = gpu.compute,
                         .multiprocessors = gpu.multiprocessors,
                         .own_kernels = true};
  }
  if (here.gpus.empty() && backend == Backend::kCuda) {
    return wrong(
        fmt::format("--backend cuda: there is no GPU here ({}); --gpu h200 asks about another "
                    "machine",
                    here.why_no_gpu));
  }
  if (here.gpus.empty() || backend == Backend::kHost) {
    return MatmulMachine{.host_library = host_matmul_library()};
  }
  MatmulMachine machine{.backend = Backend::kCuda,
                        .compute = here.gpus.front().compute,
                        .multiprocessors = here.gpus.front().multiprocessors,
                        .own_kernels = has_own_matmul()};
  const auto library = real_optional_libraries().cublas_lt();
  if (library.is_ok()) machine.cublas_lt = "cuBLASLt " + library->version;
  if (!library.is_ok()) machine.why_no_cublas_lt = library.status().message();
  return machine;
}

nlohmann::ordered_json tiles_json(const MatmulQuestion& question) {
  auto tiles = nlohmann::ordered_json::array();
  if (question.machine.multiprocessors < kMatmulCluster) return tiles;
  for (const MatmulTile& tile : kMatmulTiles) {
    const MatmulForecast cast = forecast(tile, question.problem, question.machine.multiprocessors);
    const MatmulTiling& tiling = cast.tiling;
    tiles.push_back({{"tile", tile.name},
                     {"narrow", tiling.narrow == nullptr ? "" : tiling.narrow->name},
                     {"narrow_from_row",
                      tiling.narrow == nullptr ? 0 : narrow_from_row(tiling, question.problem.m)},
                     {"tiles", cast.tiles},
                     {"waves", cast.waves},
                     {"fill", cast.fill},
                     {"predicted_us", cast.microseconds}});
  }
  return tiles;
}

std::string matmul_json(const MatmulQuestion& question, const Result<SelectedMatmul>& selected) {
  nlohmann::ordered_json value;
  if (selected.is_ok()) {
    value["plan"] = {{"algorithm", to_string(selected->algorithm)},
                     {"config", config_text(*selected, question.problem)},
                     {"why", selected->why}};
  } else {
    value["plan"] = nullptr;
    value["why"] = selected.status().to_string();
  }
  value["machine"] = {{"backend", to_string(question.machine.backend)},
                      {"compute", question.machine.compute},
                      {"multiprocessors", question.machine.multiprocessors}};
  value["candidates"] = nlohmann::ordered_json::array();
  for (const auto algorithm : kAllMatmulAlgorithms) {
    const std::string why = why_not(algorithm, question.problem, question.machine);
    value["candidates"].push_back(
        {{"algorithm", to_string(algorithm)}, {"possible", why.empty()}, {"why", why}});
  }
  value["tiles"] = tiles_json(question);
  return value.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

Result<MatmulQuestion> read_matmul_question(const ExplainMatmulArguments& a, const Machine& here) {
  MatmulQuestion question;
  TUTTI_ASSIGN(question.machine, machine_of(a, here));
  TUTTI_ASSIGN(question.problem, problem_of(a, question.machine.backend));
  TUTTI_ASSIGN(question.forced, parse({.algorithm = a.algorithm, .tile = a.tile}));
  return question;
}

int run_explain_matmul(const ExplainMatmulArguments& arguments) {
  const Machine here = discover_machine(real_cuda(), real_nvml());
  const auto question = read_matmul_question(arguments, here);
  if (!question.is_ok()) {
    tell_line(stderr, "tutti explain matmul: {}", question.status().message());
    return kUsage;
  }
  const auto selected = select(question->problem, question->machine, question->forced);
  tell(stdout, "{}",
       arguments.json ? matmul_json(*question, selected)
                      : explain(question->problem, question->machine, selected));
  return selected.is_ok() ? kSuccess : kFailure;
}

}  // namespace tutti::cli
