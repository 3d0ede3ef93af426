#include "tune/all_gather_matmul/options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/try.hpp"
#include "bench/arguments.hpp"
#include "bench/matmul/arguments.hpp"
#include "parse.hpp"
#include "tune/options.hpp"

namespace tutti::cli {
namespace {

constexpr int kUsualHostExtent = 256;
constexpr const char* kTuneMatmulExamples =
    "  tutti tune all_gather_matmul --ranks 2,4,8 --preset recipes --resume\n"
    "  tutti tune all_gather_matmul --m 8192 --n 3584 --k 8192 --algorithms fused\n";

// The options of the benchmarks, where a gather stands for the whole.
Result<BenchOptions> check_bench(BenchArguments bench, const BenchMachine& machine) {
  bench.collective = to_string(Collective::kAllGather);
  bench.algorithms = kAutoName;
  bench.mode = to_string(Mode::kEager);
  if (bench.iterations.empty()) bench.iterations = "30";
  return check_arguments(bench, machine);
}

Status check_algorithms(TuneAllGatherMatmulOptions& options, std::string_view text) {
  for (const AllGatherMatmulAlgorithm algorithm : kAllGatherMatmulAlgorithms) {
    if (algorithm == AllGatherMatmulAlgorithm::kUnfused) continue;
    if (text.empty() || text == "all") options.algorithms.push_back(algorithm);
  }
  if (!options.algorithms.empty()) return Status::ok();
  for (const std::string_view part : split(text)) {
    const auto named = parse_all_gather_matmul_algorithm(part);
    if (!named.is_ok()) return named.status().with_context("--algorithms");
    if (*named == AllGatherMatmulAlgorithm::kUnfused) continue;
    if (std::ranges::count(options.algorithms, *named) == 0) options.algorithms.push_back(*named);
  }
  return Status::ok();
}

// "8192x1792x4096,8192x3584x8192"
Result<std::vector<MatmulExtents>> read_sizes(std::string_view text) {
  std::vector<MatmulExtents> sizes;
  for (const std::string_view part : split(text)) {
    const std::size_t first = part.find('x');
    const std::size_t second = first == std::string_view::npos ? first : part.find('x', first + 1);
    if (second == std::string_view::npos) return wrong("--sizes takes MxNxK[,...]");
    TUTTI_ASSIGN(const int m, parse_int("--sizes", part.substr(0, first), {1, kMostExtent}));
    const std::string_view columns = part.substr(first + 1, second - first - 1);
    TUTTI_ASSIGN(const int n, parse_int("--sizes", columns, {1, kMostExtent}));
    TUTTI_ASSIGN(const int k, parse_int("--sizes", part.substr(second + 1), {1, kMostExtent}));
    sizes.push_back(
        {static_cast<std::size_t>(m), static_cast<std::size_t>(n), static_cast<std::size_t>(k)});
  }
  return sizes;
}

Status check_shapes(TuneAllGatherMatmulOptions& options, const MatmulArguments& a) {
  MatmulShapeTexts texts{a.m, a.n, a.k, a.weights, a.preset};
  const bool given = !(a.m + a.n + a.k + a.weights + a.preset).empty();
  if (!given && options.bench.backend == Backend::kCuda) texts.preset = "recipes";
  TUTTI_ASSIGN(options.shapes, read_matmul_shapes(texts, kUsualHostExtent));
  return check({.dtype = options.bench.dtype}).status().with_context("--dtype");
}

void add_word(std::vector<std::string>& words, std::string option, const auto& value) {
  words.push_back(std::move(option));
  words.push_back(fmt::format("{}", value));
}

}  // namespace

void add_tune_all_gather_matmul_options(CLI::App& command, TuneAllGatherMatmulArguments& a) {
  BenchArguments& bench = a.matmul.bench;
  add_ranks(command, bench.ranks, "2 to all GPUs; 2 on the host");
  add_backend(command, bench.backend);
  command.option_defaults()->group("Sizes of C = A x B, which multiply out");
  add_matmul_extents(command, a.matmul, "--preset recipes; 256 on the host");
  command.add_option("-d,--dtype", bench.dtype, "Element type")
      ->type_name("bf16|fp16|fp32")
      ->default_str("bf16; fp32 on the host");
  command.add_option("--layout", a.matmul.layout, "Layout of B")
      ->type_name("row|column")
      ->default_str("row");
  command.option_defaults()->group("Tuning");
  command
      .add_option("--algorithms", bench.algorithms,
                  "What is measured against unfused: all, or names")
      ->type_name("fused|pipelined_shift|pipelined_ring|pipelined_tiles|all[,...]")
      ->default_str("all");
  add_mover_options(command, a.mover);
  command.add_option("-n,--iterations", bench.iterations, "Samples of the fastest candidates")
      ->type_name("N")
      ->default_str("30");
  command.add_option("--output", bench.output, "Tuning table to write")
      ->type_name("FILE")
      ->default_str("the value of TUTTI_TUNING_CACHE");
  command.add_flag("--resume", a.resume, "Skip sizes that the table already has for this machine");
  add_rank_options(command, bench, kStartsRanks);
  command.add_option("--sizes", a.sizes)->group("");
  command.footer(kTuneMatmulExamples);
}

Result<TuneAllGatherMatmulOptions> check_tune_all_gather_matmul_arguments(
    const TuneAllGatherMatmulArguments& arguments, const BenchMachine& machine,
    const std::string& table) {
  TuneAllGatherMatmulOptions options;
  BenchArguments bench = arguments.matmul.bench;
  TUTTI_TRY(use_tune_defaults(bench, machine, table));
  TUTTI_TRY(check_algorithms(options, bench.algorithms));
  TUTTI_ASSIGN(options.bench, check_bench(std::move(bench), machine));
  options.bench.algorithms.clear();
  TUTTI_TRY(check_shapes(options, arguments.matmul));
  if (!arguments.sizes.empty()) {
    TUTTI_ASSIGN(options.shapes, read_sizes(arguments.sizes));
  }
  const std::string& layout = arguments.matmul.layout;
  const auto parsed = parse_matrix_layout(layout.empty() ? "row" : layout);
  if (!parsed.is_ok()) return parsed.status().with_context("--layout");
  options.layout = *parsed;
  TUTTI_ASSIGN(options.mover, read_mover_options(arguments.mover));
  options.resume = arguments.resume;
  return options;
}

std::vector<std::string> rank_words(const TuneAllGatherMatmulOptions& options) {
  const BenchOptions& bench = options.bench;
  std::vector<std::string> words = {"tune", std::string(kAllGatherMatmul)}, names, sizes;
  for (const auto& [m, n, k] : options.shapes)
    sizes.push_back(to_text(AllGatherMatmulSize{m, n, k}));
  add_word(words, "--sizes", fmt::format("{}", fmt::join(sizes, ",")));
  for (const AllGatherMatmulAlgorithm algorithm : options.algorithms) {
    names.emplace_back(to_string(algorithm));
  }
  if (names.empty()) names.emplace_back(to_string(AllGatherMatmulAlgorithm::kUnfused));
  add_word(words, "--algorithms", fmt::format("{}", fmt::join(names, ",")));
  add_word(words, "--backend", to_string(bench.backend));
  add_word(words, "--ranks", fmt::format("{}", fmt::join(bench.ranks, ",")));
  add_word(words, "--dtype", to_string(bench.dtype));
  add_word(words, "--layout", to_string(options.layout));
  add_mover_words(words, options.mover);
  add_word(words, "--iterations", bench.iterations);
  add_word(words, "--launch", to_string(bench.launch));
  add_word(words, "--timeout-ms", bench.timeout.count());
  return words;
}

}  // namespace tutti::cli
