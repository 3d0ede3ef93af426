#include "bench/all_gather_matmul/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/nearest.hpp"
#include "base/text_file.hpp"
#include "base/try.hpp"
#include "matmul/tiles.hpp"
#include "parse.hpp"

namespace tutti::cli {
namespace {

constexpr const char *kUsualRanks = "8", *kOne = "1", *kNone = "0";
constexpr int kMostPullers = 64;
constexpr std::string_view kAllOrders = "all", kMatmulAlone = "plain", kTracePrefix = "trace:";

// What --algorithms calls the orders, and what their rows do.
struct OrderName {
  std::string_view name, row;
  ArrivalOrder order;
};
constexpr std::array<OrderName, 3> kOrderNames = {
    {{"gated", "fused_plain_order", ArrivalOrder::kPlain},
     {"rotated", "fused_rotated", ArrivalOrder::kRotated},
     {"frontier", "fused_frontier", ArrivalOrder::kFrontier}}};

Status check_orders(AllGatherMatmulOptions& options, std::string_view text) {
  constexpr std::array<std::string_view, 5> kKnown = {kMatmulAlone, "gated", "rotated", "frontier",
                                                      kAllOrders};
  if (text.empty()) text = kAllOrders;
  for (const std::string_view part : split(text)) {
    bool known = part == kMatmulAlone || part == "own_matmul_only" || part == kAllOrders;
    for (const auto& [name, row, order] : kOrderNames) {
      if (part != name && part != row && part != kAllOrders) continue;
      known = true;
      if (std::ranges::count(options.orders, order) == 0) options.orders.push_back(order);
    }
    if (!known) {
      return wrong(fmt::format("unknown --algorithms '{}'{}", part, alternatives(part, kKnown)));
    }
  }
  return Status::ok();
}

// The options of `bench matmul`, of one product by the own kernel.
Status check_shared(AllGatherMatmulOptions& options, MatmulArguments a, BenchMachine machine) {
  a.bench.backend = to_string(Backend::kCuda);
  a.bench.algorithms = kOwnName;
  machine.gpus = std::max(machine.gpus, 1);  // what is wrong with an option is said anywhere
  TUTTI_ASSIGN(options.matmul, check_matmul_arguments(a, machine));
  options.matmul.bench.algorithms.clear();
  for (const DataType dtype : options.matmul.dtypes) {
    if (dtype != DataType::kFloat32) continue;
    return wrong("--dtype fp32: the own kernel multiplies bf16 and fp16");
  }
  return Status::ok();
}

Status refuse_those_of_ranks(const AllGatherMatmulArguments& a) {
  for (const auto& [option, text] :
       {std::pair("--protocol", &a.protocol), std::pair("--streams", &a.streams),
        std::pair("--tiles", &a.tiles), std::pair("--calls", &a.calls),
        std::pair("--transport", &a.transport), std::pair("--mover", &a.mover.mover),
        std::pair("--inter-stream-order", &a.mover.inter_stream_order)}) {
    const bool copied = a.arrival == "host" && text == &a.calls;
    if (text->empty() || copied) continue;
    return wrong(fmt::format("{} is of several ranks; give --gpus", option));
  }
  return Status::ok();
}

Status check_ranks(AllGatherMatmulOptions& options, const AllGatherMatmulArguments& a) {
  TUTTI_ASSIGN(options.ranks, parse_int("--ranks", a.ranks.empty() ? kUsualRanks : a.ranks,
                                        {1, kMostArrivalShards}));
  const int most = kMostArrivalFlags / options.ranks;
  TUTTI_ASSIGN(options.chunks,
               parse_int("--chunks", a.chunks.empty() ? kOne : a.chunks, {1, most}));
  TUTTI_ASSIGN(options.k_groups, parse_int("--k-groups", a.k_groups.empty() ? kOne : a.k_groups,
                                           {1, most / options.chunks}));
  TUTTI_ASSIGN(options.pullers,
               parse_int("--pullers", a.pullers.empty() ? kNone : a.pullers, {0, kMostPullers}));
  if (options.pullers % kMatmulCluster != 0) {
    return wrong(fmt::format("--pullers {}: a multiple of {}, the blocks of a cluster",
                             options.pullers, kMatmulCluster));
  }
  return Status::ok();
}

// K-groups have an order of their own: that in which they arrive.
Status check_k_groups(AllGatherMatmulOptions& options, const AllGatherMatmulArguments& a) {
  if (options.k_groups == 1) return Status::ok();
  const std::string& orders = a.matmul.bench.algorithms;
  if (orders.empty()) options.orders = {ArrivalOrder::kRotated};
  for (const ArrivalOrder order : options.orders) {
    if (order == ArrivalOrder::kRotated) continue;
    return wrong(fmt::format("--algorithms {}: only the rotated order has --k-groups {}", orders,
                             options.k_groups));
  }
  return Status::ok();
}

Status take_from_trace(std::string_view option, const std::string& given, int of_trace,
                       int& value) {
  if (!given.empty() && value != of_trace) {
    return wrong(
        fmt::format("{} {}: the trace has {}; leave {} out", option, value, of_trace, option));
  }
  value = of_trace;
  return Status::ok();
}

Status fits_shapes(const ArrivalTrace& trace, const MatmulBenchOptions& options) {
  for (const MatmulExtents& extents : options.shapes) {
    const std::size_t row = extents.k * size_of(options.dtypes.front());  // all have 16 bits
    const Status status = check_arrival_of(trace, {.m = extents.m, .bytes_per_row = row});
    if (!status.is_ok()) {
      return status.with_context(
          fmt::format("--arrival, m {}, n {}, k {}", extents.m, extents.n, extents.k));
    }
  }
  return Status::ok();
}

Status read_trace(AllGatherMatmulOptions& options, const AllGatherMatmulArguments& a) {
  const std::string file = a.arrival.substr(kTracePrefix.size());
  if (file.empty()) return wrong("--arrival trace: needs a file, such as trace:arrival.json");
  TUTTI_ASSIGN(const std::optional<std::string> text, read_text_file(file));
  if (!text) return wrong(fmt::format("--arrival {}: there is no such file", a.arrival));
  TUTTI_ASSIGN(options.trace, arrival_trace_from_json_text(*text, file));
  TUTTI_TRY(take_from_trace("--ranks", a.ranks, options.trace->ranks, options.ranks));
  TUTTI_TRY(take_from_trace("--chunks", a.chunks, options.trace->chunks_per_shard, options.chunks));
  TUTTI_TRY(take_from_trace("--k-groups", a.k_groups, options.trace->k_groups, options.k_groups));
  options.own = options.trace->own;
  return fits_shapes(*options.trace, options.matmul);
}

Status check_arrival(AllGatherMatmulOptions& options, const AllGatherMatmulArguments& a) {
  constexpr std::array<std::string_view, 5> kKnown = {"open", "model", "pull", "trace:FILE",
                                                      "host"};
  if (a.arrival.empty() || a.arrival == "open") return Status::ok();
  options.arrival_text = a.arrival;
  options.arrival = ArrivalKind::kModel;
  if (a.arrival == "model") return Status::ok();
  if (a.arrival == "host") {
    options.arrival = ArrivalKind::kHost;
    if (options.k_groups == 1 && options.pullers == 0) return Status::ok();
    return wrong("--arrival host: copies bring whole rows, without --k-groups and --pullers");
  }
  if (a.arrival == "pull") {
    options.arrival = ArrivalKind::kPull;
    if (options.pullers > 0 && options.ranks > 1 && options.chunks == 1) return Status::ok();
    return wrong("--arrival pull: needs --pullers, two or more --ranks and one of --chunks");
  }
  options.arrival = ArrivalKind::kTrace;
  if (a.arrival.starts_with(kTracePrefix)) return read_trace(options, a);
  return wrong(fmt::format("unknown --arrival '{}'{}", a.arrival, alternatives(a.arrival, kKnown)));
}

}  // namespace

std::string_view row_of_order(ArrivalOrder order) {
  for (const OrderName& each : kOrderNames) {
    if (each.order == order) return each.row;
  }
  return "?";
}

Result<AllGatherMatmulOptions> check_all_gather_matmul_arguments(const AllGatherMatmulArguments& a,
                                                                 const BenchMachine& machine) {
  AllGatherMatmulOptions options;
  TUTTI_TRY(refuse_those_of_ranks(a));
  TUTTI_TRY(check_orders(options, a.matmul.bench.algorithms));
  TUTTI_TRY(check_shared(options, a.matmul, machine));
  TUTTI_TRY(check_ranks(options, a));
  TUTTI_TRY(check_arrival(options, a));
  TUTTI_TRY(check_k_groups(options, a));
  if (!a.calls.empty()) {
    TUTTI_ASSIGN(options.calls, parse_int("--calls", a.calls, {1, kMostCalls}));
  }
  if (machine.gpus > 0) return options;
  return wrong(
      fmt::format("there is no GPU here ({}), and the gated matmul runs on one; `tutti "
                  "doctor` says more",
                  machine.why_no_gpu));
}

}  // namespace tutti::cli
