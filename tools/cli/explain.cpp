#include "explain.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>

#include "base/knobs.hpp"
#include "base/try.hpp"
#include "drivers/cuda.hpp"
#include "drivers/nccl.hpp"
#include "drivers/network.hpp"
#include "drivers/nvml.hpp"
#include "executors/network/engine.hpp"
#include "executors/peer/layout.hpp"
#include "exit_code.hpp"
#include "known_gpus.hpp"
#include "parse.hpp"
#include "planning/choose.hpp"
#include "planning/network_chunks.hpp"
#include "planning/table.hpp"
#include "tell.hpp"
#include "topology/nodes.hpp"

namespace tutti::cli {
namespace {

constexpr int kMostRanks = 1 << 20;  // as tables have

// What was asked of several machines: "2x8" is 2 nodes of 8 ranks; "8" leaves nodes to the setting.
struct Shape {
  int nodes = 0;  // 0: not given
  int ranks = 0;  // of all nodes together
};

Result<Shape> parse_shape(std::string_view text) {
  const std::size_t times = text.find('x');
  Shape shape;
  if (times == std::string_view::npos || times == 0 || times + 1 == text.size()) {
    TUTTI_ASSIGN(shape.ranks, parse_int("--ranks", text, {1, kMostRanks}));
    return shape;
  }
  TUTTI_ASSIGN(shape.nodes, parse_int("--ranks", text.substr(0, times), {1, kMostRanks}));
  TUTTI_ASSIGN(const int each,
               parse_int("--ranks", text.substr(times + 1), {1, kMostRanks / shape.nodes}));
  shape.ranks = shape.nodes * each;
  return shape;
}

std::vector<int> nodes_of(const Shape& shape) {
  if (shape.nodes == 1) return {};
  std::vector<int> node_of;
  node_of.reserve(static_cast<std::size_t>(shape.ranks));
  for (int rank = 0; rank < shape.ranks; ++rank) {
    node_of.push_back(rank / (shape.ranks / shape.nodes));
  }
  return node_of;
}

// What the driver says of the first `ranks` GPUs.
std::vector<PairReach> pairs_apart(const Machine& machine, int ranks) {
  std::vector<PairReach> apart;
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) {
      const auto i = static_cast<std::size_t>(from), j = static_cast<std::size_t>(to);
      if (from != to && !machine.peer_access[i][j]) apart.push_back({from, to, Reach::kNone});
    }
  }
  return apart;
}

Topology described(const KnownGpu& gpu) {
  return {.backend = Backend::kCuda,
          .gpu = std::string(gpu.name),
          .compute = gpu.compute,
          .multiprocessors = gpu.multiprocessors,
          .nvlinks = gpu.nvlinks,
          .nccl = true,
          .nccl_version = kAnyNccl};
}

// As TUTTI_TOPOLOGY divides the ranks of one host.
Result<std::vector<int>> nodes_by_setting(int ranks) {
  TUTTI_ASSIGN(const NodeLayout layout, parse_node_layout(Knobs::process().text("TUTTI_TOPOLOGY")));
  if (layout.kind == NodeLayout::Kind::kSystem) return std::vector<int>();
  std::vector<std::uint64_t> keys;
  for (int rank = 0; rank < ranks; ++rank) {
    TUTTI_ASSIGN(keys.emplace_back(), node_key(layout, 0, rank, ranks));
  }
  return number_nodes(keys);
}

// Sets ranks, and which of them are on one node; `gpus`: those of this machine, if it is meant.
Status read_ranks(const ExplainArguments& a, std::optional<int> gpus, Topology& topology) {
  Shape shape{.ranks = gpus.value_or(2)};
  if (!a.ranks.empty()) {
    TUTTI_ASSIGN(shape, parse_shape(a.ranks));
  }
  if (gpus && (shape.nodes > 1 || shape.ranks > *gpus)) {
    return wrong(
        fmt::format("--ranks {}: there are {} GPUs here; --gpu \"{}\" asks about a larger machine",
                    a.ranks, *gpus, topology.gpu));
  }
  topology.ranks = topology.processes = shape.ranks;
  topology.one_process = shape.ranks == 1;
  if (shape.nodes == 0) {
    TUTTI_ASSIGN(topology.node_of, nodes_by_setting(shape.ranks));
  } else {
    topology.node_of = nodes_of(shape);
    topology.hosts = shape.nodes;
  }
  return Status::ok();
}

Result<Topology> read_topology(const ExplainArguments& a, const Machine& machine,
                               const Libraries& libraries) {
  const int nccl = libraries.nccl;
  Backend backend = Backend::kAuto;
  if (!a.backend.empty()) {
    TUTTI_ASSIGN(backend, parse_backend(a.backend));
  }
  const int gpus = static_cast<int>(machine.gpus.size());
  Topology topology;
  if (!a.gpu.empty()) {
    if (backend == Backend::kHost) return wrong("--gpu describes a machine for --backend cuda");
    TUTTI_ASSIGN(const KnownGpu gpu, find_gpu(a.gpu));
    topology = described(gpu);
  } else if (backend == Backend::kCuda || (backend == Backend::kAuto && gpus > 0)) {
    if (gpus == 0) {
      return wrong(
          fmt::format("--backend cuda: there is no GPU here ({}); --gpu h200 asks about another "
                      "machine, --gpu list lists those that are known",
                      machine.why_no_gpu));
    }
    const Gpu& first = machine.gpus.front();
    topology = {.backend = Backend::kCuda,
                .gpu = first.name,
                .compute = first.compute,
                .multiprocessors = first.multiprocessors,
                .nvlinks = first.nvlinks,
                .nccl = nccl > 0,
                .nccl_version = nccl};
  }
  const bool here = a.gpu.empty() && topology.backend == Backend::kCuda;
  if (topology.backend == Backend::kHost) topology.cores = machine.host.cores;
  TUTTI_TRY(read_ranks(a, here ? std::optional(gpus) : std::nullopt, topology));
  topology.within_nodes = peer_ways(topology.backend);
  if (here) topology.limited = pairs_apart(machine, topology.ranks);
  if (topology.nodes() == 1) return topology;
  const Status network = a.gpu.empty() ? libraries.network(topology.hosts == 1) : Status::ok();
  topology.network = network.is_ok();
  topology.why_no_network = network.message();
  return topology;
}

// Of GPUs, hosts are taken to be joined by RDMA; of hosts alone, by TCP.
std::string chunks_over_network(const Topology& topology) {
  const bool cuda = topology.backend == Backend::kCuda;
  return network_cut_table({.ranks = topology.ranks,
                            .kind = cuda ? NetworkKind::kRdma : NetworkKind::kTcp,
                            .staging_bytes = NetworkEngine::kMostScratchInUse});
}

// Nobody asked for the host, but there is no GPU: what to ask instead. Else empty.
std::string note_without_gpu(const ExplainArguments& a, const Selection& selection,
                             const Machine& machine) {
  const bool here = a.gpu.empty() && a.backend.empty();
  if (!here || selection.topology.backend != Backend::kHost) return {};
  return fmt::format(
      "There is no GPU here ({}): this is the answer for the host backend. For a GPU: "
      "`tutti explain {} --gpu h200 --ranks 8`; --gpu list lists the known ones.",
      machine.why_no_gpu, to_string(selection.request.collective));
}

// Why the algorithms of the network cannot run here, though ranks are on several nodes.
std::string note_without_network(const Topology& topology) {
  if (topology.nodes() == 1 || topology.network) return {};
  return fmt::format("There is no network between nodes here: {}", topology.why_no_network);
}

// A version that is only assumed is left out.
nlohmann::json topology_json(const Topology& topology) {
  Topology shown = topology;
  if (shown.nccl_version == kAnyNccl) shown.nccl_version = 0;
  return shown;
}

std::string print_json(const Selection& selection, const TuningTable& table,
                       const std::string& note) {
  nlohmann::ordered_json value;
  if (!note.empty()) value["note"] = note;
  const auto plan = choose(selection.request, selection.topology, table);
  if (plan.is_ok()) {
    value["plan"] = {{"algorithm", plan->algorithm},
                     {"blocks", plan->blocks},
                     {"threads", plan->threads},
                     {"chunk_bytes", plan->chunk_bytes},
                     {"source", to_string(plan->source)}};
  } else {
    value["plan"] = nullptr;
    value["why"] = plan.status().to_string();
  }
  value["topology"] = topology_json(selection.topology);
  value["candidates"] = nlohmann::ordered_json::array();
  for (const Candidate& c : candidates(selection.request, selection.topology, table)) {
    value["candidates"].push_back({{"algorithm", c.algorithm},
                                   {"possible", c.possible},
                                   {"chosen", c.chosen},
                                   {"why", c.why},
                                   {"predicted_us", c.predicted_us},
                                   {"measured", c.measured}});
  }
  return value.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

// In tokens, or in bytes.
Status read_size(const ExplainArguments& a, Request& request) {
  const bool tokens = request.collective == Collective::kAllReduceResidualRmsNorm;
  if (a.rows.empty() != a.hidden.empty() || (tokens && a.rows.empty())) {
    return wrong("--rows and --hidden come together: a message is rows x hidden elements");
  }
  if (a.split_rows && (a.rows.empty() || request.collective != Collective::kReduceScatter)) {
    return wrong("--split-rows is of reduce_scatter, with --rows and --hidden");
  }
  if (a.rows.empty()) {
    TUTTI_ASSIGN(const std::size_t bytes, parse_size("--bytes", a.bytes.empty() ? "1M" : a.bytes));
    request.count = bytes / size_of(request.dtype);
    return Status::ok();
  }
  if (!a.bytes.empty()) return wrong("sizes come from --bytes, or --rows and --hidden");
  TUTTI_ASSIGN(const int rows, parse_int("--rows", a.rows, {0}));
  TUTTI_ASSIGN(const int hidden, parse_int("--hidden", a.hidden, {1}));
  TUTTI_ASSIGN(request.count, elements_of(rows, hidden, request.dtype));
  if (tokens || (a.split_rows && rows > 1)) request.hidden = static_cast<std::size_t>(hidden);
  return Status::ok();
}

}  // namespace

Result<Selection> read_question(const ExplainArguments& a, const Machine& machine,
                                const Libraries& libraries) {
  Selection selection;
  TUTTI_ASSIGN(selection.request.collective, parse_collective(a.collective));
  TUTTI_ASSIGN(selection.topology, read_topology(a, machine, libraries));
  Request& request = selection.request;
  const bool cuda = selection.topology.backend == Backend::kCuda;
  TUTTI_ASSIGN(request.dtype, parse_data_type(!a.dtype.empty() ? a.dtype : cuda ? "bf16" : "fp32"));
  TUTTI_ASSIGN(request.op, parse_op(a.op.empty() ? "sum" : a.op));
  TUTTI_TRY(read_size(a, request));
  if (!a.algorithm.empty()) {
    TUTTI_TRY(find_algorithm(request.collective, a.algorithm).status());
  }
  if (!a.buffers.empty() && a.buffers != "symmetric" && a.buffers != "plain") {
    return wrong(fmt::format("unknown --buffers '{}'; known are symmetric, plain", a.buffers));
  }
  if (a.buffers == "symmetric" && selection.topology.nodes() > 1) {
    return wrong(fmt::format("--buffers symmetric: ranks on {} nodes have no symmetric memory",
                             selection.topology.nodes()));
  }
  if (!a.mode.empty() && a.mode != "eager" && a.mode != "graph") {
    return wrong(fmt::format("unknown --mode '{}'; known are eager, graph", a.mode));
  }
  if (!a.sm_budget.empty()) {
    TUTTI_ASSIGN(request.sm_budget, parse_int("--sm-budget", a.sm_budget, {0}));
  }
  const Layout layout = layout_from(Knobs::process(), cuda);
  if (a.buffers == "plain" || selection.topology.nodes() > 1) request.set_plain();
  request.capturing = a.mode == "graph";
  const int channel = request.capturing ? 1 : 0;
  request.staging_bytes = layout.staging_size(channel);
  request.packet_bytes = layout.packet_room(channel);
  request.ring_bytes = layout.ring_bytes(channel);
  request.bidirectional_bytes = Knobs::process().integer("TUTTI_RING_BIDIRECTIONAL_MAX_BYTES");
  request.stream_barrier_bytes = Knobs::process().integer("TUTTI_STREAM_BARRIER_MAX_BYTES");
  request.in_place = a.in_place;
  request.deterministic = a.deterministic;
  request.algorithm = a.algorithm;
  static const std::string tune = Knobs::process().text("TUTTI_TUNE");  // the request names it
  request.tune = tune;
  request.only_nccl = Knobs::process().flag("TUTTI_DISABLE");
  return selection;
}

int run_explain(const ExplainArguments& arguments) {
  const Knobs& knobs = Knobs::process();
  const auto table =
      TuningTable::load(knobs.path("TUTTI_TUNING_FILE"), knobs.path("TUTTI_TUNING_CACHE"));
  if (!table.is_ok()) {
    tell_line(stderr, "tutti explain: {}", table.status().to_string());
    return kFailure;
  }
  if (arguments.gpu == "list") {
    tell(stdout, "{}", list_gpus(*table));
    return kSuccess;
  }
  const Machine machine = discover_machine(real_cuda(), real_nvml());
  NcclDriver* const nccl = real_nccl();
  const Libraries libraries{
      .nccl = nccl == nullptr ? 0 : nccl->version_number(),
      .network = [](bool one_host) { return real_network()->usable(one_host); }};
  const auto selection = read_question(arguments, machine, libraries);
  if (!selection.is_ok()) {
    tell_line(stderr, "tutti explain: {}", selection.status().message());
    return kUsage;
  }
  std::string note = note_without_gpu(arguments, *selection, machine);
  const std::string lack = note_without_network(selection->topology);
  if (!lack.empty()) note += (note.empty() ? "" : "\n") + lack;
  if (arguments.json) {
    tell(stdout, "{}", print_json(*selection, *table, note));
  } else {
    if (!note.empty()) tell_line(stdout, "{}", note);
    tell(stdout, "{}", explain(selection->request, selection->topology, *table));
    if (selection->topology.network) tell(stdout, "{}", chunks_over_network(selection->topology));
  }
  return choose(selection->request, selection->topology, *table).is_ok() ? kSuccess : kFailure;
}

}  // namespace tutti::cli
