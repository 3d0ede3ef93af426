#include "bench/all_gather_matmul/ranks/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/nearest.hpp"
#include "base/try.hpp"
#include "matmul/transport.hpp"
#include "parse.hpp"
#include "pipelines/description.hpp"

namespace tutti::cli {
namespace {

constexpr std::string_view kEachAlgorithm = "all", kOptionOfRanks = "--ranks",
                           kOptionOfGpus = "--gpus";
constexpr std::array<std::string_view, 6> kGatherMatmuls = {
    kUnfusedRow, kNcclUnfusedRow, "pipelined_shift", "pipelined_ring", "pipelined_tiles", "fused"};

// The options of ranks are named otherwise here: --ranks are emulated ones.
Status by_its_name(const Status& status) {
  std::string text = status.message();
  for (auto at = text.find(kOptionOfRanks); at != std::string::npos;
       at = text.find(kOptionOfRanks, at)) {
    text.replace(at, kOptionOfRanks.size(), kOptionOfGpus);
  }
  return {status.code(), text};
}

Status refuse_those_of_one_gpu(const AllGatherMatmulArguments& a) {
  for (const auto& [option, text] :
       {std::pair("--ranks", &a.ranks), std::pair("--chunks", &a.chunks),
        std::pair("--arrival", &a.arrival), std::pair("--tile", &a.matmul.tile)}) {
    if (text->empty()) continue;
    return wrong(
        fmt::format("{} is of one GPU that acts for several, and here the ranks are real; "
                    "leave out {}, or --gpus, --backend and --launch",
                    option, option));
  }
  return Status::ok();
}

// What all benchmarks check of the ranks, and what `bench matmul` checks of the matmul.
Status check_both(GatherMatmulOptions& options, const AllGatherMatmulArguments& a,
                  const BenchMachine& machine) {
  BenchArguments bench = a.matmul.bench;
  bench.collective = to_string(Collective::kAllGather);
  bench.ranks = a.gpus;
  bench.algorithms = kAutoName;
  bench.dtype.clear();
  bench.mode = to_string(Mode::kEager);
  const auto checked = check_arguments(bench, machine);
  if (!checked.is_ok()) return by_its_name(checked.status());
  MatmulArguments alone = a.matmul;
  alone.bench.algorithms.clear();
  alone.bench.launch.clear();
  alone.bench.inject.clear();
  alone.bench.output.clear();
  alone.bench.append = false;
  alone.bench.backend = to_string(checked->backend);
  BenchMachine here = machine;
  here.launch = Status(StatusCode::kUnavailable, "no launcher");
  TUTTI_ASSIGN(options.matmul, check_matmul_arguments(alone, here));
  const int iterations = options.matmul.bench.iterations, warmup = options.matmul.bench.warmup;
  options.matmul.bench = *checked;
  options.matmul.bench.iterations = iterations;
  options.matmul.bench.warmup = warmup;
  options.matmul.bench.bytes.clear();
  options.texts = a.matmul;
  return Status::ok();
}

Status check_gather_matmuls(GatherMatmulOptions& options, std::string_view text) {
  if (text.empty()) text = kEachAlgorithm;
  std::vector<std::string_view> known(kGatherMatmuls.begin(), kGatherMatmuls.end());
  known.push_back(kEachAlgorithm);
  for (const std::string_view part : split(text)) {
    if (std::ranges::count(known, part) == 0) {
      return wrong(fmt::format("unknown --algorithms '{}'{}", part, alternatives(part, known)));
    }
    for (const std::string_view name : kGatherMatmuls) {
      if (part != name && part != kEachAlgorithm) continue;
      const bool there = std::ranges::count(options.algorithms, name) > 0;
      if (!there) options.algorithms.emplace_back(name);
    }
  }
  return Status::ok();
}

Status read_number(int& into, std::string_view option, const std::string& text, long most) {
  if (text.empty()) return Status::ok();
  TUTTI_ASSIGN(into, parse_int(option, text, {1, most}));
  return Status::ok();
}

Status check_algorithm_options(GatherMatmulOptions& options, const AllGatherMatmulArguments& a) {
  if (!a.protocol.empty()) {
    const auto protocol = pipelines::parse_protocol(a.protocol);
    if (!protocol.is_ok()) return protocol.status().with_context("--protocol");
    options.protocol = to_string(*protocol);
  }
  TUTTI_ASSIGN(options.mover, read_mover_options(a.mover));
  TUTTI_TRY(read_number(options.streams, "--streams", a.streams, pipelines::kMostPipelineStreams));
  TUTTI_TRY(read_number(options.tiles, "--tiles", a.tiles, pipelines::kMostPipelineTiles));
  if (!a.transport.empty()) {
    TUTTI_TRY(parse_transport(a.transport).status().with_context("--transport"));
    options.transport = a.transport;
  }
  return read_number(options.calls, "--calls", a.calls, kMostCalls);
}

void add_text(std::vector<std::string>& words, std::string option, const std::string& text) {
  if (text.empty()) return;
  words.push_back(std::move(option));
  words.push_back(text);
}

}  // namespace

bool is_alone(std::string_view row) {
  return row == kCublasLtAloneRow || row == kOwnAloneRow || row == kHostAloneRow;
}

bool is_pipeline(std::string_view algorithm) {
  return pipelines::parse_algorithm(algorithm).is_ok();
}

std::string GatherMatmulOptions::pipeline_text(std::string_view algorithm) const {
  if (algorithm == "fused" && transport != "auto") return transport;
  if (!is_pipeline(algorithm)) return {};
  const auto parsed = pipelines::parse_algorithm(algorithm);
  const bool tiled = *parsed == pipelines::Algorithm::kTiles;
  return fmt::format("{}{}, {}{} stream{}{}", protocol,
                     mover.mover == pipelines::Mover::kKernel ? " by kernel" : "",
                     tiled ? fmt::format("{} tiles, ", tiles) : "", streams,
                     streams == 1 ? "" : "s", mover.inter_stream_order ? " in order" : "");
}

bool has_ranks(const AllGatherMatmulArguments& a, const BenchMachine& machine) {
  const BenchArguments& bench = a.matmul.bench;
  const bool asked = !a.gpus.empty() || !bench.backend.empty() || !bench.launch.empty() ||
                     !bench.worker_fd.empty();
  return asked || (machine.launch.is_ok() && machine.launch->size > 1);
}

Result<GatherMatmulOptions> check_gather_matmul_arguments(const AllGatherMatmulArguments& a,
                                                          const BenchMachine& machine) {
  GatherMatmulOptions options;
  TUTTI_TRY(refuse_those_of_one_gpu(a));
  TUTTI_TRY(check_both(options, a, machine));
  TUTTI_TRY(check_gather_matmuls(options, a.matmul.bench.algorithms));
  TUTTI_TRY(check_algorithm_options(options, a));
  return options;
}

std::vector<std::string> to_arguments(const GatherMatmulOptions& options) {
  const BenchOptions& bench = options.matmul.bench;
  const MatmulArguments& typed = options.texts;
  std::vector<std::string> words = {"bench", "all_gather_matmul"};
  add_text(words, "--gpus", fmt::format("{}", fmt::join(bench.ranks, ",")));
  add_text(words, "--backend", std::string(to_string(bench.backend)));
  add_text(words, "--launch", std::string(to_string(bench.launch)));
  add_text(words, "--timeout-ms", fmt::format("{}", bench.timeout.count()));
  add_text(words, "--inject", typed.bench.inject);
  add_text(words, "--m", typed.m);
  add_text(words, "--n", typed.n);
  add_text(words, "--k", typed.k);
  add_text(words, "--weights", typed.weights);
  add_text(words, "--preset", typed.preset);
  add_text(words, "--dtype", typed.bench.dtype);
  add_text(words, "--layout", typed.layout);
  add_text(words, "--algorithms", fmt::format("{}", fmt::join(options.algorithms, ",")));
  add_text(words, "--protocol", options.protocol);
  add_text(words, "--streams", fmt::format("{}", options.streams));
  add_text(words, "--tiles", fmt::format("{}", options.tiles));
  add_mover_words(words, options.mover);
  add_text(words, "--transport", options.transport);
  add_text(words, "--calls", fmt::format("{}", options.calls));
  add_text(words, "--iterations", fmt::format("{}", bench.iterations));
  add_text(words, "--warmup", fmt::format("{}", bench.warmup));
  add_text(words, "--seconds", fmt::format("{}", options.matmul.seconds));
  add_text(words, "--check", bench.check ? "on" : "off");
  return words;
}

}  // namespace tutti::cli
