#include "planning/choose.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "base/hash.hpp"
#include "base/try.hpp"
#include "device/kernel_args.hpp"
#include "planning/access.hpp"
#include "planning/filter.hpp"
#include "planning/reasons.hpp"
#include "planning/rings.hpp"
#include "planning/selection.hpp"

namespace tutti {
namespace {

OperationPlan plan_for(const Selection& selection, const Algorithm& row, PlanSource source) {
  // On the host a block is a part of one thread's work: more than one only costs barriers.
  Geometry geometry;
  if (row.geometry != nullptr && selection.topology.backend == Backend::kCuda) {
    geometry = row.geometry(selection.request.extent(selection.topology.ranks));
  }
  // A group's messages have sizes of their own, which the ranks at their other ends do not know.
  const bool has_ways = row.network != nullptr && row.collective != Collective::kSendRecv;
  return {.algorithm = &row,
          .blocks = std::min(geometry.blocks, blocks_within(selection.request, selection.topology)),
          .threads = geometry.threads,
          .chunk_bytes = geometry.chunk_bytes,
          .source = source,
          .emulated = is_emulated(row, selection.topology),
          .one_way = has_ways && !goes_both_ways(selection)};
}

OperationPlan plan_for(const Selection& selection, const Algorithm& row,
                       const TuningTable::Match& match) {
  OperationPlan plan = plan_for(selection, row, match.source->source);
  if (match.entry->blocks > 0) plan.blocks = match.entry->blocks;
  if (match.entry->threads > 0) plan.threads = match.entry->threads;
  if (match.entry->chunk_bytes > 0) plan.chunk_bytes = match.entry->chunk_bytes;
  return plan;
}

Result<OperationPlan> forced(const Selection& selection, std::string_view name, PlanSource source) {
  TUTTI_ASSIGN(const Algorithm* row,
               find_algorithm(selection.request.collective, name, selection.rows));
  const std::string reason = why_not(*row, selection.request, selection.topology);
  if (!reason.empty()) {
    return Status(StatusCode::kUnsupported,
                  fmt::format("{} was requested, but cannot run: {}", row->id, reason));
  }
  return plan_for(selection, *row, source);
}

// The algorithm that TUTTI_TUNE names for this size; nothing if it names none.
Result<std::optional<std::string>> overridden(const Selection& selection) {
  const Request& request = selection.request;
  TUTTI_ASSIGN(const auto overrides, parse_overrides(request.tune, selection.rows));
  for (const Override& item : overrides) {
    if (item.collective == request.collective && item.min_bytes <= request.bytes() &&
        request.bytes() <= item.max_bytes) {
      return std::optional(item.algorithm);
    }
  }
  return std::optional<std::string>();
}

std::optional<OperationPlan> from_table(const Selection& selection) {
  const auto named = named_by_tables(selection);
  if (!named) return std::nullopt;
  const Algorithm* faster = overtaken_by(selection, *named);
  if (faster != nullptr) return plan_for(selection, *faster, PlanSource::kModel);
  return plan_for(selection, *named->row, named->match);
}

std::optional<OperationPlan> from_model(const Selection& selection) {
  const Algorithm* best = fastest_row(selection);
  if (best == nullptr) return std::nullopt;
  return plan_for(selection, *best, PlanSource::kModel);
}

// Of a budget that cuts `plan` to few blocks: what is made for few, where there is such a row.
OperationPlan within_budget(const Selection& selection, OperationPlan plan) {
  const Request& request = selection.request;
  const int blocks = blocks_within(request, selection.topology);
  const int others = selection.topology.ranks - 1;
  for (const Algorithm& row : selection.rows) {
    if (row.stands_in_for != plan.algorithm->id || row.collective != request.collective) continue;
    const OperationPlan other = plan_for(selection, row, PlanSource::kModel);
    const bool is_cut = other.blocks == blocks && blocks * others <= row.stands_in_up_to;
    if (is_cut && why_not_unnamed(row, request, selection.topology).empty()) return other;
  }
  return plan;
}

// One rank has nobody to wait for. What it gets is what it puts in, but where that is normalised or
// multiplied; where the host does not know how much that is, a kernel has to ask. Rows and NCCL are
// taken where somebody names them.
bool is_copy(const Request& request, const Topology& topology) {
  if (topology.ranks > 1 || request.only_nccl || request.counts_on_device) return false;
  if (is_pairwise(request.collective)) return false;
  if (request.collective == Collective::kAllReduceResidualRmsNorm) return false;
  return !reduces(request.collective) || request.op != OpKind::kPreMulSum;
}

// Blocks wait for those of all other ranks: where these share a GPU, all have to be on it at once.
// Half of it stays free, since a cluster needs neighbouring multiprocessors.
int most_blocks_at_once(const Topology& topology) {
  if (topology.ranks_per_gpu <= 1) return kMaxBlocks;
  const int share = topology.multiprocessors / (2 * topology.ranks_per_gpu);
  return std::max(share - share % kMaxClusterBlocks, 1);
}

// What the call says of the grid, and what limits it.
OperationPlan with_grid(const Selection& selection, OperationPlan plan) {
  const auto& [request, topology, table, rows] = selection;
  const Algorithm& row = *plan.algorithm;
  if (request.blocks > 0) plan.blocks = request.blocks;
  if (request.threads > 0) plan.threads = request.threads;
  if (request.chunk_bytes > 0) plan.chunk_bytes = request.chunk_bytes;
  plan.blocks = std::min({plan.blocks, most_blocks(row, request.ring_bytes, request.tells_counts),
                          most_blocks_at_once(topology), blocks_within(request, topology)});
  plan.threads = std::max(plan.threads, row.min_threads);
  return plan;
}

OperationPlan with_access(const Request& request, const Topology& topology, OperationPlan plan) {
  plan.access = access_to(*plan.algorithm, request, topology);
  const bool on_host = topology.backend == Backend::kHost && !has_ring_slots(*plan.algorithm);
  if (on_host && plan.staged() && plan.chunk_bytes == 0) plan.chunk_bytes = kHostPassBytes;
  return plan;
}

// A captured constant cannot move from replay to replay. And ranks of one process that share a GPU
// share its context: the driver makes calls of one wait for the streams of another, which wait for
// the first. They meet in this way only if the setting says so. And a stream that is released goes
// on to its copies, which must not store into peers' memory, as copies through the switch do.
OperationPlan with_barriers(const Request& request, const Topology& topology, OperationPlan plan) {
  const Algorithm& row = *plan.algorithm;
  const bool admitted =
      admits_stream_barrier(request.stream_barrier_bytes, request.sm_budget, request.bytes()) &&
      !(topology.threads_share_gpus() && request.stream_barrier_bytes == kSizeAutomatic);
  plan.stream_barrier = admitted && topology.backend == Backend::kCuda && only_fetches(row) &&
                        !request.capturing && request.has_stream_barrier;
  return plan;
}

OperationPlan with_fingerprint(OperationPlan plan) {
  plan.fingerprint = Hash()
                         .add(plan.algorithm->id)
                         .add(static_cast<std::uint64_t>(plan.blocks))
                         .add(static_cast<std::uint64_t>(plan.threads))
                         .add(plan.chunk_bytes)
                         .add(static_cast<std::uint64_t>(plan.access))
                         .add(static_cast<std::uint64_t>(plan.one_way))
                         .add(static_cast<std::uint64_t>(plan.stream_barrier))
                         .value();
  return plan;
}

// Of one rank, unless somebody names an algorithm. Pieces that differ between sender and receiver
// are for an algorithm to find.
OperationPlan unless_alone(const Selection& selection, OperationPlan plan) {
  plan.alone = is_copy(selection.request, selection.topology) && !selection.request.sizes_differ;
  if (plan.alone) plan.blocks = plan.threads = 1;
  return plan;
}

Status nothing_can_run(const Selection& selection) {
  const Request& request = selection.request;
  const Topology& topology = selection.topology;
  std::string text =
      fmt::format("no algorithm can run {} ({} of {}) on {} ranks of the {} backend",
                  to_string(request.collective), to_string(request.op), to_string(request.dtype),
                  topology.ranks, to_string(topology.backend));
  if (request.sm_budget) text += fmt::format(" with a budget of {} SMs", *request.sm_budget);
  const bool peers = topology.all_reach(Reach::kPeerMemory);
  if (topology.backend == Backend::kCuda && !peers && !topology.nccl) {
    text += "; it takes peer access between all GPUs, or NCCL, and there is neither";
  }
  Reasons reasons;
  for (const Algorithm& row : selection.rows) {
    if (row.collective != request.collective) continue;
    std::string reason = why_not_unnamed(row, request, topology);
    if (reason.empty()) reason = why_not_by_itself(row, request, topology, MeasuredWith::kNothing);
    reasons.add(row.name(), reason);
  }
  for (const std::string& line : reasons.lines()) text += "; " + line;
  return {StatusCode::kUnsupported, std::move(text)};
}

Result<OperationPlan> chosen(const Selection& selection) {
  const Request& request = selection.request;
  if (request.sm_budget && *request.sm_budget < 0) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("sm_budget is {}: a number of SMs from 0 on, or none for no limit",
                              *request.sm_budget));
  }
  if (!request.algorithm.empty()) return forced(selection, request.algorithm, PlanSource::kCall);
  if (!request.tune.empty()) {
    const auto name = overridden(selection);
    if (!name.is_ok()) return name.status().with_context("TUTTI_TUNE");
    if (*name) {
      auto plan = forced(selection, **name, PlanSource::kOverride);
      if (!plan.is_ok()) return plan.status().with_context("TUTTI_TUNE");
      return plan;
    }
  }
  auto plan = from_table(selection);
  if (!plan) plan = from_model(selection);
  if (plan) return unless_alone(selection, within_budget(selection, *plan));
  return nothing_can_run(selection);
}

}  // namespace

Result<OperationPlan> select(const Selection& selection) {
  TUTTI_ASSIGN(const OperationPlan plan, chosen(selection));
  if (plan.alone) return plan;
  const auto& [request, topology, table, rows] = selection;
  return with_fingerprint(
      with_barriers(request, topology, with_access(request, topology, with_grid(selection, plan))));
}

Result<Plan> choose(const Request& request, const Topology& topology, const TuningTable& table,
                    Rows rows) {
  TUTTI_ASSIGN(const OperationPlan plan, select({request, topology, table, rows}));
  return describe(plan);
}

}  // namespace tutti
