#include "explain_pipelines.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

#include "base/knobs.hpp"
#include "base/try.hpp"
#include "bench/matmul/shapes.hpp"
#include "exit_code.hpp"
#include "matmul/problem.hpp"
#include "parse.hpp"
#include "pipelines/check.hpp"
#include "pipelines/derive.hpp"
#include "pipelines/print.hpp"
#include "tell.hpp"

namespace tutti::cli {
namespace {

using pipelines::Description;

constexpr std::string_view kFusedName = "fused";  // next to the pipelines

// `otherwise`: where the option is not given.
struct CountOption {
  std::string_view name;
  const std::string& text;
  int least, most, otherwise;
};

Result<int> read_count(const CountOption& option) {
  if (option.text.empty()) return option.otherwise;
  return parse_int(option.name, option.text, {option.least, option.most});
}

Status read_shape(const ExplainPipelinesArguments& a, Description& d) {
  constexpr int kUsual = 8192;
  TUTTI_ASSIGN(const int m, read_count({"--m", a.m, 0, kMostExtent, kUsual}));
  TUTTI_ASSIGN(const int n, read_count({"--n", a.n, 0, kMostExtent, kUsual}));
  TUTTI_ASSIGN(const int k, read_count({"--k", a.k, 0, kMostExtent, kUsual}));
  constexpr auto kMostProducts = static_cast<int>(kMaxMatmulProducts);
  TUTTI_ASSIGN(const int products, read_count({"--products", a.products, 1, kMostProducts, 1}));
  TUTTI_ASSIGN(d.dtype, parse_data_type(a.dtype.empty() ? "bf16" : a.dtype));
  TUTTI_TRY(check({.dtype = d.dtype}).status());  // a type that can be multiplied
  d.m = static_cast<std::size_t>(m);
  d.k = static_cast<std::size_t>(k);
  d.products.assign(static_cast<std::size_t>(products), {static_cast<std::size_t>(n), a.bias});
  return Status::ok();
}

Result<Description> read_description(const ExplainPipelinesArguments& a) {
  using namespace pipelines;
  Description d;
  TUTTI_TRY(read_shape(a, d));
  TUTTI_ASSIGN(d.ranks, read_count({"--ranks", a.ranks, 1, kMostPipelineRanks, 8}));
  TUTTI_ASSIGN(d.streams, read_count({"--streams", a.streams, 1, kMostPipelineStreams, d.streams}));
  TUTTI_ASSIGN(d.tiles, read_count({"--tiles", a.tiles, 1, kMostPipelineTiles, d.tiles}));
  TUTTI_ASSIGN(d.protocol, parse_protocol(a.protocol.empty() ? "get" : a.protocol));
  TUTTI_ASSIGN(d.mover, parse_mover(a.mover.empty() ? "copy_engine" : a.mover));
  if (!a.inter_stream_order.empty()) {
    TUTTI_ASSIGN(d.inter_stream_order, parse_switch("--inter-stream-order", a.inter_stream_order));
  }
  d.symmetric_a = a.symmetric_a;
  d.gathered = a.gathered;
  d.symmetric_gathered = a.symmetric_gathered;
  if (d.symmetric_a && d.protocol == Protocol::kPut) {
    return wrong("--symmetric: with --protocol put no peer reads A");
  }
  if (d.symmetric_gathered && !d.gathered) return wrong("--symmetric-gathered needs --gathered");
  return d;
}

// An option that only some algorithms know needs one of these.
Status check_tiles(const ExplainPipelinesArguments& a, const std::vector<Description>& all) {
  const auto has_tiles = [](const Description& description) {
    return description.algorithm == pipelines::Algorithm::kTiles;
  };
  if (a.tiles.empty() || std::ranges::any_of(all, has_tiles)) return Status::ok();
  return wrong(fmt::format("--tiles: {} has no tiles; pipelined_tiles has",
                           all.empty() ? kFusedName : to_string(all.front().algorithm)));
}

Result<FusedQuestion> read_fused(const ExplainPipelinesArguments& a, const Description& d) {
  TUTTI_ASSIGN(const KnownGpu gpu, find_gpu(a.gpu.empty() ? "h200" : a.gpu));
  const auto layout = parse_matrix_layout(a.layout.empty() ? "row" : a.layout);
  if (!layout.is_ok()) return layout.status().with_context("--layout");
  FusedQuestion question{.m = d.m,
                         .k = d.k,
                         .n = {},
                         .dtype = d.dtype,
                         .layout = *layout,
                         .ranks = d.ranks,
                         .gpu = gpu};
  for (const auto& product : d.products) question.n.push_back(product.n);
  return question;
}

// Ranks of one host, each with a GPU of its own.
Result<Topology> read_ranks(const ExplainPipelinesArguments& a, const FusedQuestion& question) {
  TUTTI_ASSIGN(const Backend backend, parse_backend(a.backend.empty() ? "cuda" : a.backend));
  if (backend == Backend::kHost) {
    if (!a.gpu.empty()) return wrong("--gpu describes ranks for --backend cuda");
    return Topology{.backend = backend, .ranks = question.ranks};
  }
  return Topology{.backend = Backend::kCuda,
                  .ranks = question.ranks,
                  .gpu = std::string(question.gpu.name),
                  .compute = question.gpu.compute,
                  .multiprocessors = question.gpu.multiprocessors,
                  .nvlinks = question.gpu.nvlinks};
}

// Of a call that names no algorithm.
void read_call(const Description& description, PipelinesQuestion& question) {
  static const std::string tune = Knobs::process().text("TUTTI_TUNE");  // the request names it
  question.call = {.size = {.m = description.m, .k = description.k},
                   .dtype = description.dtype,
                   .tune = tune,
                   .only_nccl = Knobs::process().flag("TUTTI_DISABLE")};
  for (const auto& product : description.products) question.call.size.n += product.n;
}

std::string choice_text(const SelectedAllGatherMatmul& selected) {
  const bool decided = selected.source != PlanSource::kModel;
  return fmt::format("auto: {}{}; {}\n", to_text(selected.way),
                     decided ? fmt::format(" ({})", to_string(selected.source)) : "", selected.why);
}

nlohmann::ordered_json choice_json(const SelectedAllGatherMatmul& selected) {
  const AllGatherMatmulWay& way = selected.way;
  nlohmann::ordered_json json = {{"algorithm", to_string(way.algorithm)}, {"why", selected.why}};
  if (selected.source != PlanSource::kModel) json["source"] = to_string(selected.source);
  if (way.streams > 0) json["protocol"] = to_string(way.protocol);
  if (way.streams > 0) json["streams"] = way.streams;
  if (way.tiles > 0) json["tiles"] = way.tiles;
  if (way.streams > 0) json["mover"] = to_string(way.mover);
  if (way.streams > 0) json["inter_stream_order"] = way.inter_stream_order;
  if (way.transport) json["transport"] = to_string(*way.transport);
  if (selected.entry != nullptr) {
    json["measured"] = {{"algorithm", to_string(selected.entry->way.algorithm)},
                        {"time_us", selected.entry->time_us},
                        {"unfused_us", selected.entry->unfused_us}};
  }
  return json;
}

void add_assumed_machine(CLI::App& command, ExplainPipelinesArguments& a) {
  command.option_defaults()->group("Machine");
  command.add_option("--gpu", a.gpu, "Assume ranks with such a GPU")
      ->type_name("NAME")
      ->default_str("h200");
  command.add_option("--backend", a.backend, "Where a call would run that names no algorithm")
      ->type_name("host|cuda")
      ->default_str("cuda");
  command.option_defaults()->group("Prediction of fused");
  command.add_option("--layout", a.layout, "Layout of B")
      ->type_name("row|column")
      ->default_str("row");
}

}  // namespace

void add_explain_pipelines_options(CLI::App& command, ExplainPipelinesArguments& a) {
  command.option_defaults()->group("Call");
  command.add_option("--m", a.m, "Rows of the gathered A and of C")
      ->type_name("N")
      ->default_str("8192");
  command.add_option("--n", a.n, "Columns of B and C")->type_name("N")->default_str("8192");
  command.add_option("--k", a.k, "Columns of A, rows of B")->type_name("N")->default_str("8192");
  command.add_option("-d,--dtype", a.dtype, "Element type")
      ->type_name("bf16|fp16|fp32")
      ->default_str("bf16");
  command.add_flag("--bias", a.bias, "Add a bias to each row of C");
  command.add_option("--products", a.products, "Multiply one A by this many Bs")
      ->type_name("N")
      ->default_str("1");
  command.add_flag("--symmetric", a.symmetric_a,
                   "A is in symmetric memory: peers read it directly");
  command.add_flag("--gathered", a.gathered, "The gathered A is an output, too");
  command.add_flag("--symmetric-gathered", a.symmetric_gathered,
                   "That output is in symmetric memory: rows arrive in it");
  command.add_option("--ranks", a.ranks, "Number of ranks")->type_name("N")->default_str("8");
  command.option_defaults()->group("Pipeline");
  command
      .add_option("--algorithms", a.algorithms,
                  "Pipelines to show; fused: the predicted time of one kernel")
      ->type_name("pipelined_shift|pipelined_ring|pipelined_tiles|fused[,...]")
      ->default_str("pipelined_shift");
  command.add_option("--protocol", a.protocol, "get: the receiver moves data; put: the sender")
      ->type_name("get|put")
      ->default_str("get");
  command.add_option("--mover", a.mover, "What moves data between ranks")
      ->type_name("copy_engine|kernel")
      ->default_str("copy_engine");
  command.add_option("--streams", a.streams, "Most streams that take turns")
      ->type_name("N")
      ->default_str("4");
  command.add_option("--tiles", a.tiles, "Tiles of each shard, for pipelined_tiles")
      ->type_name("N")
      ->default_str("8");
  command
      .add_option("--inter-stream-order", a.inter_stream_order,
                  "on: a stream begins after the first transfer of the stream before it")
      ->type_name("on|off")
      ->default_str("off");
  add_assumed_machine(command, a);
  command.option_defaults()->group("Output");
  command.add_option("--rank", a.rank, "Also show what this rank enqueues, step by step")
      ->type_name("N");
  command.add_option("--format", a.format, "Format of standard output")
      ->type_name("text|json")
      ->default_str("text");
  command.footer(
      "  tutti explain all_gather_matmul --ranks 8 --m 4096 --n 1792 --k 4096\n"
      "  tutti explain all_gather_matmul --algorithms pipelined_ring --protocol put --rank 0\n");
}

Result<PipelinesQuestion> read_pipelines_question(const ExplainPipelinesArguments& a) {
  PipelinesQuestion question;
  TUTTI_ASSIGN(Description description, read_description(a));
  TUTTI_ASSIGN(const FusedQuestion fused, read_fused(a, description));
  TUTTI_ASSIGN(question.topology, read_ranks(a, fused));
  read_call(description, question);
  const std::string named = a.algorithms.empty() ? "pipelined_shift" : a.algorithms;
  for (const std::string_view name : split(named)) {
    if (name == kFusedName) {
      question.fused = fused;
      continue;
    }
    TUTTI_ASSIGN(description.algorithm, pipelines::parse_algorithm(name));
    question.descriptions.push_back(description);
  }
  TUTTI_TRY(check_tiles(a, question.descriptions));
  TUTTI_ASSIGN(question.rank, read_count({"--rank", a.rank, 0, description.ranks - 1, -1}));
  if (!a.format.empty() && a.format != "text" && a.format != "json") {
    return wrong(fmt::format("unknown --format '{}'; known are text, json", a.format));
  }
  question.json = a.format == "json";
  return question;
}

Result<std::string> pipelines_text(const PipelinesQuestion& question, const TuningTable* table) {
  std::string text;
  nlohmann::ordered_json all = nlohmann::ordered_json::object();
  if (table != nullptr) {
    TUTTI_ASSIGN(const auto selected, select(question.call, question.topology, *table));
    text = choice_text(selected);
    all["auto"] = choice_json(selected);
  }
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const Description& description : question.descriptions) {
    TUTTI_ASSIGN(const pipelines::Program program, pipelines::derive(description));
    TUTTI_ASSIGN(const auto ranks, pipelines::checked(program));
    json.push_back(pipelines::to_json(program));
    text += (text.empty() ? "" : "\n") + pipelines::print(program);
    if (question.rank < 0) continue;
    const auto& instructions = ranks[static_cast<std::size_t>(question.rank)];
    json.back()["rank"] = question.rank;
    json.back()["instructions"] = pipelines::to_json(program, instructions);
    text += fmt::format("RANK {}, BY STREAM:\n{}", question.rank,
                        pipelines::print(program, instructions));
  }
  all["pipelines"] = json;
  if (question.fused) {
    TUTTI_ASSIGN(const std::vector<FusedForecast> forecasts, fused_forecasts(*question.fused));
    text += (text.empty() ? "" : "\n") + fused_text(*question.fused, forecasts);
    all["fused"] = fused_json(*question.fused, forecasts);
  }
  return question.json ? all.dump(1) + "\n" : text;
}

int run_explain_pipelines(const ExplainPipelinesArguments& arguments) {
  const auto question = read_pipelines_question(arguments);
  if (!question.is_ok()) {
    tell_line(stderr, "tutti explain all_gather_matmul: {}", question.status().message());
    return kUsage;
  }
  const Knobs& knobs = Knobs::process();
  const auto table =
      TuningTable::load(knobs.path("TUTTI_TUNING_FILE"), knobs.path("TUTTI_TUNING_CACHE"));
  if (!table.is_ok()) {
    tell_line(stderr, "tutti explain all_gather_matmul: {}", table.status().to_string());
    return kFailure;
  }
  const auto text = pipelines_text(*question, &*table);
  if (!text.is_ok()) {
    tell_line(stderr, "tutti explain all_gather_matmul: {}", text.status().message());
    return kUsage;
  }
  tell(stdout, "{}", *text);
  return kSuccess;
}

}  // namespace tutti::cli
