#include "bench/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "algorithms/catalogue.hpp"
#include "base/names.hpp"
#include "base/try.hpp"
#include "base/units.hpp"
#include "bench/sizes.hpp"
#include "output_file.hpp"
#include "parse.hpp"

namespace tutti::cli {
namespace {

constexpr std::array<Name<Mode>, 2> kModes = {{{Mode::kGraph, "graph"}, {Mode::kEager, "eager"}}};
constexpr std::array<Name<BufferKind>, 3> kBufferKinds = {{{BufferKind::kSymmetric, "symmetric"},
                                                           {BufferKind::kRegistered, "registered"},
                                                           {BufferKind::kPlain, "plain"}}};
constexpr std::array<Name<Cache>, 2> kCaches = {{{Cache::kHot, "hot"}, {Cache::kCold, "cold"}}};
constexpr std::array<Name<Format>, 4> kFormats = {{{Format::kTable, "table"},
                                                   {Format::kMarkdown, "markdown"},
                                                   {Format::kCsv, "csv"},
                                                   {Format::kJson, "json"}}};
constexpr std::array<Name<LaunchKind>, 2> kLaunchKinds = {
    {{LaunchKind::kProcesses, "processes"}, {LaunchKind::kThreads, "threads"}}};
constexpr std::array<Name<Injection::Kind>, 3> kInjections = {{{Injection::Kind::kFlip, "flip"},
                                                               {Injection::Kind::kCrash, "crash"},
                                                               {Injection::Kind::kHang, "hang"}}};
constexpr int kMostOperations = 1000;
constexpr int kMostSamples = 1'000'000;

template <class E, std::size_t N>
Status choose_name(E& into, const std::array<Name<E>, N>& names, std::string_view option,
                   std::string_view text) {
  if (text.empty()) return Status::ok();
  TUTTI_ASSIGN(into, parse_name<E>(names, {}, option, text));
  return Status::ok();
}

// By its own name, or by that of nccl-tests' program: "all_reduce_perf".
Result<Collective> collective_of(std::string_view text) {
  constexpr std::string_view kProgram = "_perf";
  if (text == "alltoall_perf") return Collective::kAllToAll;
  if (text == "sendrecv_perf") return Collective::kSendRecv;
  if (text.ends_with(kProgram)) text.remove_suffix(kProgram.size());
  return parse_collective(text);
}

// Ranks that another launcher has started are one group, unless --launch asks for others.
Status check_launch(BenchOptions& options, const BenchArguments& arguments,
                    const BenchMachine& machine) {
  if (!arguments.launch.empty()) return Status::ok();
  const Result<LaunchEnvironment>& launch = machine.launch;
  if (launch.status().code() == StatusCode::kInvalidArgument) return launch.status();
  if (!launch.is_ok() || launch->size < 2) return Status::ok();
  options.launcher = launch->launcher;
  options.speaks = launch->rank == 0;
  if (!arguments.ranks.empty() && arguments.ranks != fmt::format("{}", launch->size)) {
    return wrong(
        fmt::format("--ranks {}: {} started {} ranks; leave --ranks out, or give --launch "
                    "processes to start other ranks",
                    arguments.ranks, launch->launcher, launch->size));
  }
  if (!arguments.trace.empty()) {
    return wrong(
        fmt::format("--trace: the ranks that {} started keep no trace; start `tutti "
                    "bench` without it",
                    launch->launcher));
  }
  options.ranks = {launch->size};
  return Status::ok();
}

Status check_backend(BenchOptions& options, const BenchArguments& arguments,
                     const BenchMachine& machine) {
  Backend asked = Backend::kAuto;
  if (!arguments.backend.empty()) {
    TUTTI_ASSIGN(asked, parse_backend(arguments.backend));
  }
  if (asked == Backend::kCuda && machine.gpus == 0) {
    return wrong(
        fmt::format("--backend cuda: there is no GPU here ({}); `tutti doctor` says more, "
                    "--backend host runs without one",
                    machine.why_no_gpu));
  }
  if (asked == Backend::kAuto) asked = machine.gpus > 0 ? Backend::kCuda : Backend::kHost;
  options.backend = asked;
  return Status::ok();
}

// The bench's own ranks are on one machine, where messages are taken only if they are named.
bool is_for_other_machines(const Algorithm& row, const BenchOptions& options) {
  return row.network != nullptr && options.launcher.empty();
}

int most_ranks(const BenchOptions& options) {
  const Backend backend = options.backend;
  int most = 1;
  for (const Algorithm& row : rows_of(options.collective)) {
    if (is_for_other_machines(row, options)) continue;
    most = std::max(most, backend == Backend::kCuda ? row.max_ranks_cuda : row.max_ranks_host);
  }
  return most;
}

Status check_rank_count(const BenchOptions& options, int ranks, const BenchMachine& machine) {
  if (ranks == 0) return wrong("--ranks: 0 ranks have nothing to reduce; give 1 or more");
  // A launcher may show each of its ranks another GPU.
  const bool own = options.launcher.empty();
  if (own && options.backend == Backend::kCuda && ranks > machine.gpus) {
    return wrong(
        fmt::format("--ranks {}: there are {} GPUs here, and each rank needs its own; "
                    "--backend host takes more ranks",
                    ranks, machine.gpus));
  }
  if (ranks <= most_ranks(options)) return Status::ok();
  return wrong(fmt::format("--ranks {}: no algorithm takes more than {} on the {} backend", ranks,
                           most_ranks(options), to_string(options.backend)));
}

Status check_ranks(BenchOptions& options, const BenchArguments& arguments,
                   const BenchMachine& machine) {
  const bool cuda = options.backend == Backend::kCuda;
  TUTTI_TRY(check_launch(options, arguments, machine));
  if (!options.launcher.empty()) return check_rank_count(options, options.ranks.front(), machine);
  if (arguments.ranks.empty()) {
    options.ranks = {cuda ? machine.gpus : 2};
    return Status::ok();
  }
  for (const std::string_view part : split(arguments.ranks)) {
    TUTTI_ASSIGN(const int ranks, parse_int("--ranks", part, {0}));
    TUTTI_TRY(check_rank_count(options, ranks, machine));
    options.ranks.push_back(ranks);
  }
  return Status::ok();
}

// What runs here without being named: what would be emulated does not.
std::vector<std::string> usable_algorithms(const BenchOptions& options,
                                           const BenchMachine& machine) {
  const bool cuda = options.backend == Backend::kCuda;
  std::vector<std::string> names;
  for (const Algorithm& row : rows_of(options.collective)) {
    if ((row.needs & kNeedsMulticast) != 0 && !(cuda && machine.multicast)) continue;
    if (row.splits_rows != options.split_rows) continue;
    const bool on_one_node = options.launcher.empty() && !machine.takes_ranks_apart;
    if (on_one_node && (row.needs & kNeedsNetwork) != 0) continue;
    if ((cuda ? row.max_ranks_cuda : row.max_ranks_host) > 0) names.emplace_back(row.name());
  }
  return names;
}

// By default what a call takes, and NCCL to compare it with.
Status check_algorithms(BenchOptions& options, std::string_view text, const BenchMachine& machine) {
  if (text.empty() || text == "all") {
    options.algorithms = usable_algorithms(options, machine);
    if (text == "all") return Status::ok();
    std::erase_if(options.algorithms, [](const std::string& name) { return name != kNcclName; });
    options.algorithms.emplace(options.algorithms.begin(), kAutoName);
    return Status::ok();
  }
  for (const std::string_view part : split(text)) {
    std::string name(kAutoName);
    if (part != kAutoName) {
      TUTTI_ASSIGN(const Algorithm* row, find_algorithm(options.collective, part));
      name = row->name();
    }
    if (std::count(options.algorithms.begin(), options.algorithms.end(), name) == 0) {
      options.algorithms.push_back(name);
    }
  }
  return Status::ok();
}

// nccl-tests' -G: so many operations in a graph, or none of that.
Status check_cudagraph(BenchOptions& options, const BenchArguments& arguments) {
  if (arguments.cudagraph.empty()) return Status::ok();
  if (!arguments.mode.empty() || !arguments.graph_operations.empty()) {
    return wrong("-G says what --mode and --graph-operations say; give one or the other");
  }
  TUTTI_ASSIGN(const int operations, parse_int("-G", arguments.cudagraph, {0, kMostOperations}));
  options.mode = operations > 0 ? Mode::kGraph : Mode::kEager;
  if (operations > 0) options.graph_operations = operations;
  return Status::ok();
}

Status check_numbers(BenchOptions& options, const BenchArguments& arguments) {
  const auto read = [](int& into, std::string_view option, std::string_view text, IntRange range) {
    if (text.empty()) return Status::ok();
    TUTTI_ASSIGN(into, parse_int(option, text, range));
    return Status::ok();
  };
  TUTTI_TRY(read(options.graph_operations, "--graph-operations", arguments.graph_operations,
                 {1, kMostOperations}));
  TUTTI_TRY(read(options.iterations, "--iterations", arguments.iterations, {1, kMostSamples}));
  TUTTI_TRY(read(options.warmup, "--warmup", arguments.warmup, {0, kMostSamples}));
  TUTTI_TRY(read(options.worker_fd, "--worker-fd", arguments.worker_fd, {0}));
  if (!arguments.sm_budget.empty()) {
    TUTTI_ASSIGN(options.sm_budget, parse_int("--sm-budget", arguments.sm_budget, {0}));
  }
  int timeout_ms = static_cast<int>(options.timeout.count());
  TUTTI_TRY(read(timeout_ms, "--timeout-ms", arguments.timeout_ms, {1}));
  options.timeout = std::chrono::milliseconds(timeout_ms);
  return Status::ok();
}

Status check_names(BenchOptions& options, const BenchArguments& arguments) {
  const bool cuda = options.backend == Backend::kCuda;
  options.mode = cuda ? Mode::kGraph : Mode::kEager;
  options.dtype = cuda ? DataType::kBfloat16 : DataType::kFloat32;
  if (!arguments.dtype.empty()) {
    TUTTI_ASSIGN(options.dtype, parse_data_type(arguments.dtype));
  }
  if (!arguments.op.empty()) {
    TUTTI_ASSIGN(options.op, parse_op(arguments.op));
  }
  TUTTI_TRY(choose_name(options.mode, kModes, "--mode", arguments.mode));
  if (!arguments.buffers.empty()) {
    TUTTI_TRY(choose_name(options.buffers.emplace(), kBufferKinds, "--buffers", arguments.buffers));
  }
  TUTTI_TRY(choose_name(options.cache, kCaches, "--cache", arguments.cache));
  if (!arguments.check.empty()) {
    TUTTI_ASSIGN(options.check, parse_switch("--check", arguments.check));
  }
  TUTTI_TRY(choose_name(options.format, kFormats, "--format", arguments.format));
  TUTTI_TRY(choose_name(options.launch, kLaunchKinds, "--launch", arguments.launch));
  return Status::ok();
}

Status check_injection(BenchOptions& options, std::string_view text) {
  if (text.empty()) return Status::ok();
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return wrong("--inject takes KIND:RANK[:ALGORITHM]");
  TUTTI_TRY(choose_name(options.inject.kind, kInjections, "--inject", text.substr(0, colon)));
  const std::string_view rest = text.substr(colon + 1), rank = rest.substr(0, rest.find(':'));
  TUTTI_ASSIGN(options.inject.rank, parse_int("--inject", rank, {0}));
  if (rank.size() < rest.size()) options.inject.algorithm = rest.substr(rank.size() + 1);
  const bool ends_process = options.inject.kind != Injection::Kind::kFlip;
  if (ends_process && options.launch == LaunchKind::kThreads) {
    return wrong("--inject crash and hang need --launch processes");
  }
  return Status::ok();
}

// What fits alone but not together.
Status check_together(const BenchOptions& options) {
  if (options.mode == Mode::kGraph && options.backend == Backend::kHost) {
    return wrong("--mode graph: graphs are of the CUDA backend; the host backend is eager");
  }
  if (options.cache == Cache::kCold && (options.chained || options.in_place)) {
    return wrong(
        "--cache cold uses other buffers for each operation, --chained and --in-place "
        "the same again; measure them apart");
  }
  if (options.append && options.sm_budget) {
    return wrong("--append: rows do not say their --sm-budget, and would replace those without");
  }
  if (options.append && options.output.empty()) return wrong("--append needs --output FILE");
  return Status::ok();
}

// Of all_reduce_residual_rms_norm. What the call itself refuses is told by it.
Status check_tokens(const BenchOptions& options) {
  const std::string_view name = to_string(options.collective);
  if (options.hidden == 0) {
    return wrong(fmt::format("{} is measured by --rows 1,2,4 --hidden 8192", name));
  }
  const auto rows = rows_of(options.collective);
  if (!rows.front().takes(options.dtype, options.op)) {
    return wrong(fmt::format("{} takes sums of fp16, bf16 and fp32", name));
  }
  if (options.chained || options.in_place) {
    return wrong(fmt::format("{} is measured neither --chained nor --in-place", name));
  }
  return Status::ok();
}

// Of collectives that move bits.
Status check_moving(const BenchOptions& options) {
  const std::string_view name = to_string(options.collective);
  if (options.op != OpKind::kSum) return wrong(fmt::format("--op: {} reduces nothing", name));
  if (options.chained) {
    return wrong(fmt::format("{} is not measured --chained: its output is no input", name));
  }
  if (options.in_place && !runs_in_place(options.collective)) {
    return wrong(fmt::format("--in-place: {} takes two buffers", name));
  }
  return Status::ok();
}

// Of reductions of which a rank gets a part, or nothing. In place, an operation leaves its result
// in what the next one reduces.
Status check_parts(const BenchOptions& options) {
  if (!options.chained && !options.in_place) return Status::ok();
  const std::string_view what =
      has_root(options.collective) ? "one rank has its output" : "its output is a part of an input";
  return wrong(fmt::format("{} is measured neither --chained nor --in-place: {}",
                           to_string(options.collective), what));
}

// Of a matrix that is split along its last dimension.
Status check_split_rows(const BenchOptions& options) {
  if (options.collective != Collective::kReduceScatter) {
    return wrong("--split-rows: reduce_scatter alone splits rows");
  }
  if (options.hidden == 0) return wrong("--split-rows needs --rows and --hidden");
  if (std::count(options.bytes.begin(), options.bytes.end(), options.token_bytes()) > 0) {
    return wrong("--split-rows: one row is split as any message; give --rows 2 or more");
  }
  for (const int ranks : options.ranks) {
    if (options.hidden % ranks == 0) continue;
    return wrong(fmt::format("--split-rows: rows of {} elements are not whole parts for {} ranks",
                             options.hidden, ranks));
  }
  return Status::ok();
}

Status check_root(BenchOptions& options, std::string_view text) {
  if (text.empty()) return Status::ok();
  TUTTI_ASSIGN(options.root, parse_int("--root", text, {0}));
  if (!has_root(options.collective)) {
    return wrong(fmt::format("--root: {} has none", to_string(options.collective)));
  }
  for (const int ranks : options.ranks) {
    if (options.root < ranks) continue;
    return wrong(
        fmt::format("--root {}: of {} ranks the last one is {}", options.root, ranks, ranks - 1));
  }
  return Status::ok();
}

void add(std::vector<std::string>& words, std::string option, const auto& value) {
  words.push_back(std::move(option));
  words.push_back(fmt::format("{}", value));
}

// What this process will write.
Status check_files(const BenchOptions& options, const BenchMachine& machine) {
  if (options.worker_fd >= 0 || !options.speaks) return Status::ok();
  if (!options.trace.empty() && !machine.records) {
    return wrong("--trace shows what the ranks record, and TUTTI_RECORDER is 0");
  }
  if (!options.output.empty()) TUTTI_TRY(check_writable(options.output).with_context("--output"));
  if (!options.trace.empty()) TUTTI_TRY(check_writable(options.trace).with_context("--trace"));
  return Status::ok();
}

}  // namespace

std::string_view to_string(Mode mode) { return name_of<Mode>(kModes, mode); }
std::string_view to_string(BufferKind buffers) {
  return name_of<BufferKind>(kBufferKinds, buffers);
}
std::string_view to_string(Cache cache) { return name_of<Cache>(kCaches, cache); }
std::string_view to_string(Format format) { return name_of<Format>(kFormats, format); }
std::string_view to_string(LaunchKind launch) { return name_of<LaunchKind>(kLaunchKinds, launch); }

Result<BenchOptions> check_arguments(const BenchArguments& arguments, const BenchMachine& machine) {
  BenchOptions options;
  options.timeout = machine.timeout;
  options.chained = arguments.chained;
  options.in_place = arguments.in_place;
  options.split_rows = arguments.split_rows;
  options.append = arguments.append;
  options.repro = arguments.repro;
  options.output = arguments.output;
  options.trace = arguments.trace;
  if (!arguments.collective.empty()) {
    TUTTI_ASSIGN(options.collective, collective_of(arguments.collective));
  }
  TUTTI_TRY(check_backend(options, arguments, machine));
  TUTTI_TRY(check_ranks(options, arguments, machine));
  TUTTI_TRY(check_names(options, arguments));
  TUTTI_TRY(check_sizes(options, arguments));
  TUTTI_TRY(check_algorithms(options, arguments.algorithms, machine));
  TUTTI_TRY(check_numbers(options, arguments));
  TUTTI_TRY(check_cudagraph(options, arguments));
  TUTTI_TRY(check_injection(options, arguments.inject));
  TUTTI_TRY(check_together(options));
  if (options.normalises()) TUTTI_TRY(check_tokens(options));
  if (!reduces(options.collective)) TUTTI_TRY(check_moving(options));
  const bool in_parts = has_pieces(options.collective) || has_root(options.collective);
  if (reduces(options.collective) && in_parts) TUTTI_TRY(check_parts(options));
  if (options.split_rows) TUTTI_TRY(check_split_rows(options));
  TUTTI_TRY(check_root(options, arguments.root));
  TUTTI_TRY(check_files(options, machine));
  return options;
}

std::vector<std::string> group_words(const BenchOptions& options) {
  std::vector<std::string> words;
  add(words, "--backend", to_string(options.backend));
  add(words, "--ranks", fmt::format("{}", fmt::join(options.ranks, ",")));
  add(words, "--dtype", to_string(options.dtype));
  add(words, "--algorithms", fmt::format("{}", fmt::join(options.algorithms, ",")));
  add(words, "--launch", to_string(options.launch));
  add(words, "--timeout-ms", options.timeout.count());
  if (options.inject.kind != Injection::Kind::kNone) {
    const auto kind = name_of<Injection::Kind>(kInjections, options.inject.kind);
    add(words, "--inject",
        fmt::format("{}:{}:{}", kind, options.inject.rank, options.inject.algorithm));
  }
  return words;
}

std::vector<std::string> sweep_words(const BenchOptions& options) {
  std::vector<std::string> bytes, rows;
  for (const std::size_t size : options.bytes) {
    bytes.push_back(format_bytes(size));
    if (options.has_rows()) rows.push_back(fmt::format("{}", size / options.token_bytes()));
  }
  std::vector<std::string> words = group_words(options);
  if (options.has_rows()) {
    add(words, "--rows", fmt::format("{}", fmt::join(rows, ",")));
    add(words, "--hidden", options.hidden);
  } else {
    add(words, "--bytes", fmt::format("{}", fmt::join(bytes, ",")));
  }
  return words;
}

std::vector<std::string> to_arguments(const BenchOptions& options) {
  std::vector<std::string> words = sweep_words(options);
  words.insert(words.begin(), std::string(to_string(options.collective)));
  add(words, "--op", to_string(options.op));
  if (options.sm_budget) add(words, "--sm-budget", *options.sm_budget);
  if (options.buffers) add(words, "--buffers", to_string(*options.buffers));
  add(words, "--mode", to_string(options.mode));
  add(words, "--graph-operations", options.graph_operations);
  if (options.root > 0) add(words, "--root", options.root);
  if (options.split_rows) words.emplace_back("--split-rows");
  if (options.chained) words.emplace_back("--chained");
  if (options.in_place) words.emplace_back("--in-place");
  add(words, "--cache", to_string(options.cache));
  add(words, "--iterations", options.iterations);
  add(words, "--warmup", options.warmup);
  add(words, "--check", options.check ? "on" : "off");
  return words;
}

}  // namespace tutti::cli
