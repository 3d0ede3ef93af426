#include "dispatch/choose.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "base/try.hpp"
#include "base/units.hpp"
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

// Without being told to. `measured`: a table names it.
bool may_take(const Question& question, const Algorithm& row, bool measured) {
  const auto& [request, topology, table, rows] = question;
  return why_not(row, request, topology).empty() &&
         why_not_by_itself(row, request, topology, measured).empty();
}

// The communicator decides by the same properties (Prepared::staged).
bool goes_through_staging(const Algorithm& row, const Request& request) {
  if (!row.peers_read_input && !row.peers_write_output) return false;
  return !request.symmetric || (request.in_place && row.in_place_needs_staging);
}

Load load_of(const Question& question, const Algorithm& row) {
  const Request& request = question.request;
  Load load{question.topology.ranks, request.bytes(), 0};
  load.sent = packet_expansion(row, request.dtype);
  if (goes_through_staging(row, request)) {
    load.staging_bytes =
        request.staging_bytes > 0 ? request.staging_bytes : std::max<std::size_t>(load.bytes, 1);
  }
  return load;
}

double expected_us(const Question& question, const Algorithm& row) {
  return predicted_us(row, load_of(question, row), question.topology);
}

// By the model, of the rows that can run and that `admits`; of equal ones the first. Null: none.
template <class Admits>
const Algorithm* fastest(const Question& question, Admits admits) {
  const Algorithm* best = nullptr;
  double best_us = 0;
  for (const Algorithm& row : question.rows) {
    if (row.collective != question.request.collective || !admits(row)) continue;
    if (!may_take(question, row, false)) continue;
    const double us = expected_us(question, row);
    if (best != nullptr && us >= best_us) continue;
    best = &row;
    best_us = us;
  }
  return best;
}

// A measured choice is left for a predicted one only if that is better by more than the model errs
// (docs/performance_notes.md).
constexpr double kDoubt = 1.25;

// Tables hold what buffers take that peers reach. Where `row` would pass through staging, a row
// that does not may be faster: that one, or null. Among rows that all stage, the table's order
// stands.
const Algorithm* overtaken_by(const Question& question, const Algorithm& row) {
  if (!goes_through_staging(row, question.request)) return nullptr;
  const Algorithm* direct = fastest(question, [&question](const Algorithm& other) {
    return !goes_through_staging(other, question.request);
  });
  if (direct == nullptr) return nullptr;
  return kDoubt * expected_us(question, *direct) < expected_us(question, row) ? direct : nullptr;
}

std::optional<Plan> from_table(const Question& question) {
  const Request& request = question.request;
  std::size_t first = 0;
  while (const auto match =
             question.table.find(request.collective, question.topology, request.bytes(), first)) {
    // A cache may name a row of another build.
    const auto row = find_algorithm(request.collective, match->entry->algorithm, question.rows);
    if (row.is_ok() && may_take(question, **row, true)) {
      const Algorithm* faster = overtaken_by(question, **row);
      if (faster != nullptr) return plan_for(question, *faster, PlanSource::kModel);
      return plan_for(question, **row, *match);
    }
    first = match->index + 1;
  }
  return std::nullopt;
}

std::optional<Plan> from_model(const Question& question) {
  const Algorithm* best = fastest(question, [](const Algorithm&) { return true; });
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

std::string staging_text(const Load& load) {
  const std::size_t passes = passes_of(load);
  return fmt::format("{} pass{} through {} of staging", passes, passes == 1 ? "" : "es",
                     format_bytes(std::min(load.staging_bytes, load.bytes)));
}

// What is known of the row's time, and from where.
void fill_time(const Question& question, const Algorithm& row, Candidate& candidate) {
  const Request& request = question.request;
  const auto match = question.table.find(request.collective, question.topology, request.bytes());
  const Load load = load_of(question, row);
  const bool staged = passes_of(load) > 0;
  const bool named = match && match->entry->algorithm == row.id;
  if (!staged && match && (named || match->entry->runner_up == row.id)) {
    const TuningEntry& entry = *match->entry;
    candidate.predicted_us = named ? entry.time_us : entry.runner_up_us;
    candidate.why = fmt::format("measured on {}, {} samples at {} bytes or less; {}", entry.date,
                                entry.samples, entry.max_bytes, match->source->name);
    return;
  }
  candidate.predicted_us = predicted_us(row, load, question.topology);
  candidate.why = "cost model";
  if (staged) candidate.why += ", " + staging_text(load);
  if (!staged || !named) return;
  candidate.why += fmt::format("; {} names it for symmetric buffers", match->source->name);
  if (const Algorithm* faster = overtaken_by(question, row))
    candidate.why +=
        fmt::format(", but staged it is expected to be slower than {}", faster->name());
}

// Of a row that could run, but that nobody asked for.
void add_limit(const Question& question, const Algorithm& row, Candidate& candidate) {
  const auto& [request, topology, table, rows] = question;
  const auto match = table.find(request.collective, topology, request.bytes());
  const bool measured = match && match->entry->algorithm == row.id;
  const std::string limit = why_not_by_itself(row, request, topology, measured);
  if (!limit.empty()) candidate.why += "; " + limit;
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
    if (candidate.possible) add_limit(question, row, candidate);
    candidate.chosen = plan.is_ok() && plan->algorithm == row.id;
    result.push_back(std::move(candidate));
  }
  return result;
}

}  // namespace tutti
