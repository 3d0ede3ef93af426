#include "dispatch/choose.hpp"

#include <fmt/core.h>

#include <optional>

#include "base/try.hpp"
#include "dispatch/filter.hpp"
#include "tuning/model.hpp"

namespace tutti {
namespace {

// One question and all that may answer it.
struct Question {
  const Request& request;
  const Topology& topology;
  const TuningTable& table;
  Rows rows;
};

Plan plan_for(const Question& question, const Algorithm& row, PlanSource source) {
  // On the host a block is a part of one thread's work: more than one only costs barriers.
  Geometry geometry;
  if (row.geometry != nullptr && question.topology.backend == Backend::kCuda) {
    geometry = row.geometry(question.request.bytes(), question.topology.ranks);
  }
  return {std::string(row.id), geometry.blocks, geometry.threads, 0, source};
}

Plan plan_for(const Question& question, const Algorithm& row, const TuningTable::Match& match) {
  Plan plan = plan_for(question, row, match.source->source);
  if (match.entry->blocks > 0) plan.blocks = match.entry->blocks;
  if (match.entry->threads > 0) plan.threads = match.entry->threads;
  plan.chunk_bytes = match.entry->chunk_bytes;
  return plan;
}

Result<Plan> forced(const Question& question, std::string_view name, PlanSource source) {
  TUTTI_ASSIGN(const Algorithm* row,
               find_algorithm(question.request.collective, name, question.rows));
  const std::string reason = why_not(*row, question.request, question.topology);
  if (!reason.empty()) {
    return Status(StatusCode::kUnsupported,
                  fmt::format("{} was asked for, but {}", row->id, reason));
  }
  return plan_for(question, *row, source);
}

// The algorithm that TUTTI_TUNE names for this size; nothing if it names none.
Result<std::optional<std::string>> overridden(const Question& question) {
  const Request& request = question.request;
  TUTTI_ASSIGN(const auto overrides, parse_overrides(request.tune, question.rows));
  for (const Override& item : overrides) {
    if (item.collective == request.collective && item.min_bytes <= request.bytes() &&
        request.bytes() <= item.max_bytes) {
      return std::optional(item.algorithm);
    }
  }
  return std::optional<std::string>();
}

std::optional<Plan> from_table(const Question& question) {
  const Request& request = question.request;
  std::size_t first = 0;
  while (const auto match =
             question.table.find(request.collective, question.topology, request.bytes(), first)) {
    // A cache may name a row of another build.
    const auto row = find_algorithm(request.collective, match->entry->algorithm, question.rows);
    if (row.is_ok() && why_not(**row, request, question.topology).empty()) {
      return plan_for(question, **row, *match);
    }
    first = match->index + 1;
  }
  return std::nullopt;
}

// Of rows that are expected to take the same, the first.
std::optional<Plan> from_model(const Question& question) {
  const Algorithm* best = nullptr;
  double best_us = 0;
  for (const Algorithm& row : question.rows) {
    if (row.collective != question.request.collective) continue;
    if (!why_not(row, question.request, question.topology).empty()) continue;
    const double us =
        predicted_us(row, question.topology.ranks, question.request.bytes(), question.topology);
    if (best != nullptr && us >= best_us) continue;
    best = &row;
    best_us = us;
  }
  if (best == nullptr) return std::nullopt;
  return plan_for(question, *best, PlanSource::kModel);
}

Status nothing_can_run(const Question& question) {
  const Request& request = question.request;
  const Topology& topology = question.topology;
  std::string text =
      fmt::format("no algorithm can run {} ({} of {}) on {} ranks of the {} backend",
                  to_string(request.collective), to_string(request.op), to_string(request.dtype),
                  topology.ranks, to_string(topology.backend));
  if (topology.backend == Backend::kCuda && !topology.peer_access && !topology.nccl) {
    text += "; it takes peer access between all GPUs, or NCCL, and there is neither";
  }
  for (const Algorithm& row : question.rows) {
    if (row.collective != request.collective) continue;
    text += fmt::format("; {} {}", row.name(), why_not(row, request, topology));
  }
  return {StatusCode::kUnsupported, std::move(text)};
}

Result<Plan> answer(const Question& question) {
  const Request& request = question.request;
  if (!request.algorithm.empty()) return forced(question, request.algorithm, PlanSource::kCall);
  if (!request.tune.empty()) {
    const auto name = overridden(question);
    if (!name.is_ok()) return name.status().with_context("TUTTI_TUNE");
    if (*name) {
      auto plan = forced(question, **name, PlanSource::kOverride);
      if (!plan.is_ok()) return plan.status().with_context("TUTTI_TUNE");
      return plan;
    }
  }
  if (auto plan = from_table(question)) return *std::move(plan);
  if (auto plan = from_model(question)) return *std::move(plan);
  return nothing_can_run(question);
}

// What is known of the row's time, and from where.
void fill_time(const Question& question, const Algorithm& row, Candidate& candidate) {
  const Request& request = question.request;
  const auto match = question.table.find(request.collective, question.topology, request.bytes());
  if (match && (match->entry->algorithm == row.id || match->entry->runner_up == row.id)) {
    const TuningEntry& entry = *match->entry;
    candidate.predicted_us = entry.algorithm == row.id ? entry.time_us : entry.runner_up_us;
    candidate.why = fmt::format("measured on {}, {} samples at {} bytes or less; {}", entry.date,
                                entry.samples, entry.max_bytes, match->source->name);
    return;
  }
  candidate.predicted_us =
      predicted_us(row, question.topology.ranks, request.bytes(), question.topology);
  candidate.why = "cost model";
}

}  // namespace

Result<Plan> choose(const Request& request, const Topology& topology, const TuningTable& table,
                    Rows rows) {
  return answer({request, topology, table, rows});
}

std::vector<Candidate> candidates(const Request& request, const Topology& topology,
                                  const TuningTable& table, Rows rows) {
  const Question question{request, topology, table, rows};
  const auto plan = answer(question);
  std::vector<Candidate> result;
  for (const Algorithm& row : rows) {
    if (row.collective != request.collective) continue;
    Candidate candidate;
    candidate.algorithm = row.id;
    candidate.why = why_not(row, request, topology);
    candidate.possible = candidate.why.empty();
    if (candidate.possible) fill_time(question, row, candidate);
    candidate.chosen = plan.is_ok() && plan->algorithm == row.id;
    result.push_back(std::move(candidate));
  }
  return result;
}

}  // namespace tutti
