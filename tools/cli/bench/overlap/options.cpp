#include "bench/overlap/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/try.hpp"
#include "base/units.hpp"
#include "parse.hpp"

namespace tutti::cli {
namespace {

constexpr int kMostRows = 1 << 20;  // of a matrix: no product of sizes overflows
constexpr int kMostMebibytes = 1 << 16;
constexpr int kMostPause = 10'000;  // ms

// Where nothing is said: what a GPU does in a second or two, and what a core does.
struct Defaults {
  int extent, mebibytes;
  const char *dtype, *iterations, *warmup;
};
constexpr Defaults kCudaDefaults = {8192, 64, "fp16", "200", "50"};
constexpr Defaults kHostDefaults = {512, 4, "fp32", "20", "5"};

bool on_cuda(const BenchArguments& arguments, const BenchMachine& machine) {
  if (arguments.backend.empty() || arguments.backend == "auto") return machine.gpus > 0;
  return arguments.backend == "cuda";
}

void use_defaults(BenchArguments& arguments, const Defaults& defaults) {
  const auto use = [](std::string& text, const char* otherwise) {
    if (text.empty()) text = otherwise;
  };
  use(arguments.dtype, defaults.dtype);
  use(arguments.iterations, defaults.iterations);
  use(arguments.warmup, defaults.warmup);
  use(arguments.algorithms, "auto");
  arguments.collective = "all_gather";
  arguments.mode = "eager";  // inside a graph, what a copy costs is another matter
}

Status check_extents(OverlapOptions& options, const OverlapArguments& arguments,
                     const Defaults& defaults) {
  const auto read = [&](std::size_t& into, std::string_view option, const std::string& text) {
    int extent = defaults.extent;
    if (!text.empty()) {
      TUTTI_ASSIGN(extent, parse_int(option, text, {1, kMostRows}));
    }
    into = static_cast<std::size_t>(extent);
    return Status::ok();
  };
  TUTTI_TRY(read(options.matmul.m, "--m", arguments.m));
  TUTTI_TRY(read(options.matmul.n, "--n", arguments.n));
  TUTTI_TRY(read(options.matmul.k, "--k", arguments.k));
  return Status::ok();
}

Status check_type(OverlapOptions& options, bool tf32) {
  const DataType dtype = options.bench.dtype;
  const bool host = options.bench.backend == Backend::kHost;
  if (host && dtype != DataType::kFloat32) {
    return wrong(
        fmt::format("--dtype {}: on the host a BLAS multiplies, and only fp32", to_string(dtype)));
  }
  if (dtype != DataType::kFloat32 && dtype != DataType::kFloat16 && dtype != DataType::kBfloat16) {
    return wrong(fmt::format("--dtype {}: a matmul is of fp16, bf16 or fp32", to_string(dtype)));
  }
  if (tf32 && (host || dtype != DataType::kFloat32)) {
    return wrong("--tf32 is how a GPU may multiply fp32; give --dtype fp32 --backend cuda");
  }
  options.matmul.dtype = dtype;
  options.matmul.tf32 = tf32;
  return Status::ok();
}

Status check_phases(OverlapOptions& options, const std::string& text) {
  if (text.empty()) {
    options.phases = {Phase::kMatmul, Phase::kAllGather, Phase::kSequential};
    if (!options.dependent) options.phases.push_back(Phase::kOverlap);
    return Status::ok();
  }
  std::vector<bool> wanted(kPhases.size());
  for (const std::string_view part : split(text)) {
    TUTTI_ASSIGN(const Phase phase, parse_phase("--modes", part));
    wanted[static_cast<std::size_t>(phase)] = true;
  }
  for (const Phase phase : kPhases) {  // in their own order
    if (wanted[static_cast<std::size_t>(phase)]) options.phases.push_back(phase);
  }
  if (options.dependent && options.phases.back() == Phase::kOverlap) {
    return wrong("--modes overlap: with --dependent the matmul follows the all_gather");
  }
  return Status::ok();
}

Status check_gather(OverlapOptions& options, const std::string& ag_mb, const Defaults& defaults) {
  if (!options.dependent) {
    int mebibytes = defaults.mebibytes;
    if (!ag_mb.empty()) {
      TUTTI_ASSIGN(mebibytes, parse_int("--ag-mb", ag_mb, {1, kMostMebibytes}));
    }
    options.ag_mb = static_cast<std::size_t>(mebibytes);
    return Status::ok();
  }
  if (!ag_mb.empty()) {
    return wrong(
        "--ag-mb: with --dependent each rank puts in m / ranks rows of k elements; give --m and "
        "--k");
  }
  for (const int ranks : options.bench.ranks) {
    if (options.matmul.m % static_cast<std::size_t>(ranks) == 0) continue;
    return wrong(fmt::format("--m {}: with --dependent {} ranks have equal numbers of rows",
                             options.matmul.m, ranks));
  }
  return Status::ok();
}

Status check_compute(OverlapOptions& options, const OverlapArguments& arguments) {
  if (arguments.compute == to_string(Compute::kArithmetic)) {
    options.compute = Compute::kArithmetic;
  } else if (!arguments.compute.empty() && arguments.compute != to_string(Compute::kMatmul)) {
    return wrong(
        fmt::format("unknown --compute '{}'; known are matmul, arithmetic", arguments.compute));
  }
  if (!arguments.pause.empty()) {
    TUTTI_ASSIGN(options.pause_ms, parse_int("--pause", arguments.pause, {0, kMostPause}));
  }
  options.clocks = arguments.clocks;
  if (!options.clocks || options.bench.backend == Backend::kCuda) return Status::ok();
  return wrong("--clocks are those of SMs; give --backend cuda");
}

Status check_format(const BenchOptions& options) {
  const bool csv = std::filesystem::path(options.output).extension() == ".csv";
  if (options.format != Format::kCsv && (!csv || options.append)) return Status::ok();
  return wrong("prints a table, markdown or json, not csv");
}

void add(std::vector<std::string>& words, std::string option, const auto& value) {
  words.push_back(std::move(option));
  words.push_back(fmt::format("{}", value));
}

}  // namespace

std::string_view to_string(Compute compute) {
  return compute == Compute::kMatmul ? "matmul" : "arithmetic";
}

std::size_t OverlapOptions::part_bytes(int ranks) const {
  if (!dependent) return ag_mb * MiB;
  return matmul.m / static_cast<std::size_t>(ranks) * matmul.k * size_of(matmul.dtype);
}

Result<OverlapOptions> check_overlap_arguments(const OverlapArguments& arguments,
                                               const BenchMachine& machine) {
  OverlapOptions options;
  BenchArguments bench = arguments.bench;
  const Defaults& defaults = on_cuda(bench, machine) ? kCudaDefaults : kHostDefaults;
  use_defaults(bench, defaults);
  TUTTI_ASSIGN(options.bench, check_arguments(bench, machine));
  options.bench.bytes.clear();
  options.dependent = arguments.dependent;
  TUTTI_TRY(check_extents(options, arguments, defaults));
  TUTTI_TRY(check_type(options, arguments.tf32));
  TUTTI_TRY(check_phases(options, arguments.modes));
  TUTTI_TRY(check_gather(options, arguments.ag_mb, defaults));
  TUTTI_TRY(check_compute(options, arguments));
  TUTTI_TRY(check_format(options.bench));
  return options;
}

std::vector<std::string> to_arguments(const OverlapOptions& options) {
  std::vector<std::string> words = group_words(options.bench), phases;
  for (const Phase phase : options.phases) phases.emplace_back(to_string(phase));
  words.insert(words.begin(), {"bench", "overlap"});
  add(words, "--m", options.matmul.m);
  add(words, "--n", options.matmul.n);
  add(words, "--k", options.matmul.k);
  if (options.ag_mb > 0) add(words, "--ag-mb", options.ag_mb);
  add(words, "--modes", fmt::format("{}", fmt::join(phases, ",")));
  if (options.matmul.tf32) words.emplace_back("--tf32");
  if (options.dependent) words.emplace_back("--dependent");
  add(words, "--compute", to_string(options.compute));
  add(words, "--pause", options.pause_ms);
  if (options.clocks) words.emplace_back("--clocks");
  if (options.bench.in_place) words.emplace_back("--in-place");
  if (options.bench.buffers) add(words, "--buffers", to_string(*options.bench.buffers));
  add(words, "--iterations", options.bench.iterations);
  add(words, "--warmup", options.bench.warmup);
  add(words, "--check", options.bench.check ? "on" : "off");
  return words;
}

}  // namespace tutti::cli
