#include "bench/matmul/options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/nearest.hpp"
#include "base/try.hpp"
#include "matmul/tiles.hpp"
#include "parse.hpp"

namespace tutti::cli {
namespace {

constexpr int kMostSeconds = 600;
constexpr std::string_view kSuffix = "_matmul";  // of the names that rows have

// What is measured where nothing is said.
struct MatmulDefaults {
  int extent, seconds;
  const char *dtype, *algorithms, *iterations, *warmup;
};
constexpr MatmulDefaults kMatmulOnCuda = {8192, 3, "bf16", "own,cublaslt", "40", "4"};
constexpr MatmulDefaults kMatmulOnHost = {256, 0, "fp32", "host", "10", "1"};

const MatmulDefaults& defaults_of(Backend backend) {
  return backend == Backend::kCuda ? kMatmulOnCuda : kMatmulOnHost;
}

std::string_view text_or(const std::string& text, const char* otherwise) {
  return text.empty() ? std::string_view(otherwise) : std::string_view(text);
}

template <class T>
void add_once(std::vector<T>& list, const T& value) {
  if (std::ranges::count(list, value) == 0) list.push_back(value);
}

// What all benchmarks check, of one rank in this process.
Result<BenchOptions> check_common(const MatmulArguments& arguments, const BenchMachine& machine) {
  BenchArguments bench = arguments.bench;
  bench.collective = to_string(Collective::kAllGather);
  bench.ranks = "1";
  bench.launch = to_string(LaunchKind::kThreads);
  bench.dtype.clear();
  bench.algorithms = kAutoName;
  const bool cuda = bench.backend == to_string(Backend::kCuda) ||
                    (bench.backend != to_string(Backend::kHost) && machine.gpus > 0);
  const MatmulDefaults& defaults = cuda ? kMatmulOnCuda : kMatmulOnHost;
  if (bench.iterations.empty()) bench.iterations = defaults.iterations;
  if (bench.warmup.empty()) bench.warmup = defaults.warmup;
  return check_arguments(bench, machine);
}

Status check_dtypes(MatmulBenchOptions& options, std::string_view text) {
  for (const std::string_view part : split(text)) {
    TUTTI_ASSIGN(const DataType dtype, parse_data_type(part));
    if (dtype != DataType::kFloat32 && dtype != DataType::kFloat16 &&
        dtype != DataType::kBfloat16) {
      return wrong(fmt::format("--dtype {}: a matmul is of fp16, bf16 or fp32", part));
    }
    add_once(options.dtypes, dtype);
  }
  return Status::ok();
}

Status check_layouts(MatmulBenchOptions& options, std::string_view text) {
  for (const std::string_view part : split(text)) {
    const auto layout = parse_matrix_layout(part);
    if (!layout.is_ok()) return layout.status().with_context("--layout");
    add_once(options.layouts, *layout);
  }
  return Status::ok();
}

Status check_matmul_algorithms(MatmulBenchOptions& options, std::string_view text) {
  constexpr std::array<std::string_view, 5> kKnown = {kAutoName, kOwnName, kCublasLtName,
                                                      kPlainName, kHostName};
  options.bench.algorithms.clear();
  for (std::string_view name : split(text)) {
    if (name.ends_with(kSuffix)) name.remove_suffix(kSuffix.size());
    if (std::ranges::count(kKnown, name) == 0) {
      return wrong(fmt::format("unknown --algorithms '{}'{}", name, alternatives(name, kKnown)));
    }
    const bool of_host = name == kHostName, on_host = options.bench.backend == Backend::kHost;
    if (name != kAutoName && of_host != on_host) {
      return wrong(fmt::format("--algorithms {}: not available on the {} backend", name,
                               to_string(options.bench.backend)));
    }
    add_once(options.bench.algorithms, std::string(name));
  }
  return Status::ok();
}

Status check_tiles(MatmulBenchOptions& options, std::string_view text) {
  options.tiles = {""};
  if (text.empty()) return Status::ok();
  if (std::ranges::count(options.bench.algorithms, kOwnName) == 0) {
    return wrong("--tile is of the own kernel; give --algorithms own");
  }
  options.tiles.clear();
  constexpr auto known = matmul_tile_names();
  for (const std::string_view part : split(text)) {
    if (part != "all" && std::ranges::count(known, part) == 0) {
      return wrong(fmt::format("unknown --tile '{}'{}", part, alternatives(part, known)));
    }
    for (const std::string_view name : known) {
      if (part == name || part == "all") add_once(options.tiles, std::string(name));
    }
  }
  return Status::ok();
}

Status check_tune(MatmulBenchOptions& options, const std::string& text) {
  if (text.empty()) return Status::ok();
  TUTTI_ASSIGN(options.tune, parse_switch("--tune", text));
  if (!options.tune) return Status::ok();
  if (options.bench.backend == Backend::kHost) {
    return wrong("--tune on: on the host backend there is nothing to choose from");
  }
  if (std::ranges::count(options.bench.algorithms, kAutoName) > 0) return Status::ok();
  return wrong("--tune on changes what auto uses; give --algorithms auto");
}

Status check_matmul_numbers(MatmulBenchOptions& options, const MatmulArguments& arguments) {
  if (!arguments.products.empty()) {
    constexpr auto kMost = static_cast<long>(kMaxMatmulProducts);
    TUTTI_ASSIGN(options.products, parse_int("--products", arguments.products, {1, kMost}));
  }
  options.seconds = defaults_of(options.bench.backend).seconds;
  if (!arguments.seconds.empty()) {
    TUTTI_ASSIGN(options.seconds, parse_int("--seconds", arguments.seconds, {0, kMostSeconds}));
  }
  return Status::ok();
}

}  // namespace

Result<MatmulBenchOptions> check_matmul_arguments(const MatmulArguments& a,
                                                  const BenchMachine& machine) {
  MatmulBenchOptions options;
  TUTTI_ASSIGN(options.bench, check_common(a, machine));
  options.bench.bytes.clear();
  options.bias = a.bias;
  const MatmulDefaults& defaults = defaults_of(options.bench.backend);
  TUTTI_ASSIGN(
      options.shapes,
      read_matmul_shapes({.m = a.m, .n = a.n, .k = a.k, .weights = a.weights, .preset = a.preset},
                         defaults.extent));
  TUTTI_TRY(check_dtypes(options, text_or(a.bench.dtype, defaults.dtype)));
  TUTTI_TRY(check_layouts(options, text_or(a.layout, "row")));
  TUTTI_TRY(check_matmul_algorithms(options, text_or(a.bench.algorithms, defaults.algorithms)));
  TUTTI_TRY(check_tiles(options, a.tile));
  TUTTI_TRY(check_tune(options, a.tune));
  TUTTI_TRY(check_matmul_numbers(options, a));
  return options;
}

}  // namespace tutti::cli
