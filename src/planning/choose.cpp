#include "planning/choose.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "base/try.hpp"
#include "planning/filter.hpp"
#include "planning/selection.hpp"

namespace tutti {
namespace {

Plan plan_for(const Selection& selection, const Algorithm& row, PlanSource source) {
  // On the host a block is a part of one thread's work: more than one only costs barriers.
  Geometry geometry;
  if (row.geometry != nullptr && selection.topology.backend == Backend::kCuda) {
    geometry = row.geometry(selection.request.extent(selection.topology.ranks));
  }
  geometry.blocks = std::min(geometry.blocks, blocks_within(selection.request, selection.topology));
  return {std::string(row.id),  geometry.blocks, geometry.threads,
          geometry.chunk_bytes, source,          is_emulated(row, selection.topology)};
}

Plan plan_for(const Selection& selection, const Algorithm& row, const TuningTable::Match& match) {
  Plan plan = plan_for(selection, row, match.source->source);
  if (match.entry->blocks > 0) {
    plan.blocks =
        std::min(match.entry->blocks, blocks_within(selection.request, selection.topology));
  }
  if (match.entry->threads > 0) plan.threads = match.entry->threads;
  if (match.entry->chunk_bytes > 0) plan.chunk_bytes = match.entry->chunk_bytes;
  return plan;
}

Result<Plan> forced(const Selection& selection, std::string_view name, PlanSource source) {
  TUTTI_ASSIGN(const Algorithm* row,
               find_algorithm(selection.request.collective, name, selection.rows));
  const std::string reason = why_not(*row, selection.request, selection.topology);
  if (!reason.empty()) {
    return Status(StatusCode::kUnsupported,
                  fmt::format("{} was asked for, but {}", row->id, reason));
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

std::optional<Plan> from_table(const Selection& selection) {
  const auto named = named_by_tables(selection);
  if (!named) return std::nullopt;
  const Algorithm* faster = overtaken_by(selection, *named->row);
  if (faster != nullptr) return plan_for(selection, *faster, PlanSource::kModel);
  return plan_for(selection, *named->row, named->match);
}

std::optional<Plan> from_model(const Selection& selection) {
  const Algorithm* best = fastest_row(selection);
  if (best == nullptr) return std::nullopt;
  return plan_for(selection, *best, PlanSource::kModel);
}

// Of a budget that cuts `plan` to few blocks: what is made for few, where there is such a row.
Plan within_budget(const Selection& selection, Plan plan) {
  const Request& request = selection.request;
  const int blocks = blocks_within(request, selection.topology);
  const int others = selection.topology.ranks - 1;
  for (const Algorithm& row : selection.rows) {
    if (row.stands_in_for != plan.algorithm || row.collective != request.collective) continue;
    const Plan other = plan_for(selection, row, PlanSource::kModel);
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

Plan unless_alone(const Selection& selection, Plan plan) {
  plan.alone = is_copy(selection.request, selection.topology);
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
  if (topology.backend == Backend::kCuda && !topology.peer_access && !topology.nccl) {
    text += "; it takes peer access between all GPUs, or NCCL, and there is neither";
  }
  for (const Algorithm& row : selection.rows) {
    if (row.collective != request.collective) continue;
    std::string reason = why_not_unnamed(row, request, topology);
    if (reason.empty()) reason = why_not_by_itself(row, request, topology, false);
    text += fmt::format("; {} {}", row.name(), reason);
  }
  return {StatusCode::kUnsupported, std::move(text)};
}

}  // namespace

Result<Plan> select(const Selection& selection) {
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
  if (plan) return unless_alone(selection, within_budget(selection, *std::move(plan)));
  return nothing_can_run(selection);
}

Result<Plan> choose(const Request& request, const Topology& topology, const TuningTable& table,
                    Rows rows) {
  return select({request, topology, table, rows});
}

}  // namespace tutti
