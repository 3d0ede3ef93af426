// Why each row was taken, or was not.
#include <fmt/core.h>

#include <algorithm>

#include "base/units.hpp"
#include "planning/choose.hpp"
#include "planning/filter.hpp"
#include "planning/rings.hpp"
#include "planning/selection.hpp"

namespace tutti {
namespace {

// What was chosen, and by what.
struct Choice {
  const Selection& selection;
  Result<Plan> plan;
  std::optional<Named> named;

  bool is(PlanSource source) const { return plan.is_ok() && plan->source == source; }
  bool takes(const Algorithm& row) const { return plan.is_ok() && plan->algorithm == row.id; }
  std::string_view taken() const { return name_of_id(plan->algorithm); }
};

std::string staging_text(const Load& load) {
  const std::size_t passes = passes_of(load);
  return fmt::format("{} pass{} through {} of staging", passes, passes == 1 ? "" : "es",
                     format_bytes(std::min(load.staging_bytes, load.staged_bytes)));
}

// "shipped h200.json names two_shot"
std::string claim_of(const TuningTable::Match& match) {
  const TuningEntry& entry = *match.entry;
  const std::string_view name = name_of_id(entry.algorithm);
  return entry.provenance == Provenance::kPublished
             ? fmt::format("published: {} ({})", name, entry.source)
             : fmt::format("{} names {}", match.source->name, name);
}

// Where the time comes from.
std::string fill_time(const Choice& choice, const Algorithm& row, Candidate& candidate) {
  double& time_us = candidate.predicted_us;
  if (is_emulated(row, choice.selection.topology)) return "emulated by a loop over the peers";
  const Load load = load_of(choice.selection, row);
  const TuningEntry* entry = choice.named ? choice.named->match.entry : nullptr;
  const bool staged = passes_of(load) > 0;
  if (entry != nullptr && entry->provenance == Provenance::kMeasured &&
      is_as_measured(choice.selection, row, *entry)) {
    if (entry->algorithm == row.id) time_us = entry->time_us;
    if (entry->runner_up == row.id) time_us = entry->runner_up_us;
  }
  candidate.measured = time_us > 0;
  if (candidate.measured) {
    return fmt::format("measured on {}, {} samples up to {}; {}", entry->date, entry->samples,
                       format_bytes(entry->max_bytes), choice.named->match.source->name);
  }
  time_us = predicted_us(row, load, choice.selection.topology);
  return staged ? "cost model, " + staging_text(load) : "cost model";
}

// What the tables say where no row can do it; empty where they say nothing.
std::string passed_over(const Choice& choice) {
  const Selection& selection = choice.selection;
  const auto matches = selection.table.matches(key_of(selection.request), selection.topology);
  if (matches.empty()) return {};
  const TuningTable::Match& first = matches.front();
  if (choice.named && choice.named->match.entry == first.entry) return {};
  const TuningEntry& entry = *first.entry;
  const Algorithm* published =
      entry.provenance == Provenance::kPublished ? published_row(selection, entry) : nullptr;
  if (published != nullptr) {
    return fmt::format("; {}, whose {} the model expects to be far slower", claim_of(first),
                       published->name());
  }
  return fmt::format("; {}, which cannot run here", claim_of(first));
}

// Whether `taken`, which the plan takes, is there for a budget's sake: no table named it, and the
// model would not have chosen it by itself.
bool stands_in(const Choice& choice, const Algorithm& taken) {
  if (!choice.is(PlanSource::kModel) || taken.stands_in_for.empty()) return false;
  const auto& [request, topology, table, rows] = choice.selection;
  return !why_not_by_itself(taken, request, topology, MeasuredWith::kNothing).empty();
}

// What a table says of the rings is theirs alone while it decides.
RingChoice ring_instead(const Choice& choice, const Algorithm& row) {
  const bool from_model = !choice.named || choice.is(PlanSource::kModel);
  return ring_meant(choice.selection, row, from_model ? nullptr : choice.named->match.entry);
}

// Of a ring that was taken: why it goes that way round.
std::string ways_of(const Choice& choice, const Algorithm& row) {
  const std::string why = ring_instead(choice, row).why;
  return why.empty() ? why : "; " + why;
}

// What the row that a table names was measured with; the request asks for something else.
std::string named_for(const Choice& choice) {
  const bool narrow = is_narrow(choice.selection, *choice.named->row);
  return fmt::format("; {} names it for {}", choice.named->match.source->name,
                     narrow ? "whole vectors" : "symmetric buffers");
}

// Of what the model chose: why it did, if a table names another row.
std::string_view instead_of_named(const Choice& choice) {
  if (!choice.named) return "";
  return is_narrow(choice.selection, *choice.named->row) ? " for pieces that are no whole vectors"
                                                         : " without staging";
}

std::string why_taken(const Choice& choice, const Algorithm& row) {
  if (choice.is(PlanSource::kCall)) return "; requested by the call";
  if (choice.is(PlanSource::kOverride)) return "; requested by TUTTI_TUNE";
  if (choice.plan->alone) return "; one rank alone: its input is copied, and no kernel runs";
  if (stands_in(choice, row)) {
    return fmt::format("; made for few SMs, it replaces {}", name_of_id(row.stands_in_for));
  }
  if (choice.is(PlanSource::kModel)) {
    return fmt::format("; the fastest{}", instead_of_named(choice)) + passed_over(choice) +
           ways_of(choice, row);
  }
  const TuningEntry& entry = *choice.named->match.entry;
  std::string text;
  if (entry.provenance == Provenance::kMeasured && entry.algorithm != row.id) {
    text = "; " + claim_of(choice.named->match);
  } else if (entry.provenance == Provenance::kPublished) {
    text = "; " + claim_of(choice.named->match);
    if (!entry.algorithm.ends_with(to_string(row.family))) {
      text += fmt::format(", which cannot run here; the next is {}", to_string(row.family));
    }
  } else if (!is_as_measured(choice.selection, row, entry)) {
    text = named_for(choice);
  }
  return text + passed_over(choice) + ways_of(choice, row);
}

// Of a row that could run, but that nobody asked for.
std::string limit_of(const Choice& choice, const Algorithm& row) {
  MeasuredWith measured = MeasuredWith::kNothing;
  if (choice.named && choice.named->match.entry->algorithm == row.id) {
    measured = measured_by(*choice.named->match.entry);
  }
  std::string reason =
      why_not_by_itself(row, choice.selection.request, choice.selection.topology, measured);
  if (!reason.empty()) return reason;
  const RingChoice ring = ring_instead(choice, row);
  return ring.row == &row ? reason : fmt::format("not the ring for this call: {}", ring.why);
}

std::string why_not_taken(const Choice& choice, const Algorithm& row) {
  if (!choice.plan.is_ok()) return {};  // that is told above all rows
  const std::string_view taken = choice.taken();
  if (choice.is(PlanSource::kCall)) return fmt::format("; the call requests {}", taken);
  if (choice.is(PlanSource::kOverride)) return fmt::format("; TUTTI_TUNE requests {}", taken);
  const std::string limit = limit_of(choice, row);
  if (!limit.empty()) return "; " + limit;
  const auto taker = find_algorithm(row.collective, taken, choice.selection.rows);
  if (taker.is_ok() && stands_in(choice, **taker) && (*taker)->stands_in_for == row.id) {
    return fmt::format("; {} replaces it if SMs are few", taken);
  }
  if (!choice.named) return fmt::format("; no faster than {}", taken);
  const TuningTable::Match& match = choice.named->match;
  if (choice.is(PlanSource::kModel)) {
    const bool narrow = is_narrow(choice.selection, *choice.named->row);
    if (choice.named->row == &row) {
      return fmt::format("{}; with {}, {} is expected to be faster", named_for(choice),
                         narrow ? "others" : "staging", taken);
    }
    if (!narrow && goes_through_staging(row, choice.selection.request, choice.selection.topology)) {
      return "; it needs staging as well";
    }
    return fmt::format("; no faster than {}", taken);
  }
  if (match.entry->provenance == Provenance::kPublished) {
    const Family family = choice.named->row->family;
    return row.family == family ? fmt::format("; no faster than {}", taken)
                                : fmt::format("; published: {} is faster", to_string(family));
  }
  return match.entry->runner_up == row.id ? fmt::format("; slower than {}", taken)
                                          : "; " + claim_of(match);
}

}  // namespace

std::vector<Candidate> candidates(const Request& request, const Topology& topology,
                                  const TuningTable& table, Rows rows) {
  const Selection selection{request, topology, table, rows};
  const Choice choice{selection, choose(request, topology, table, rows),
                      named_by_tables(selection)};
  std::vector<Candidate> result;
  for (const Algorithm& row : rows) {
    if (row.collective != request.collective) continue;
    Candidate candidate;
    candidate.algorithm = row.id;
    candidate.chosen = choice.takes(row);
    candidate.why = candidate.chosen ? why_not(row, request, topology)
                                     : why_not_unnamed(row, request, topology);
    candidate.possible = candidate.why.empty();
    if (candidate.possible) {
      candidate.why = fill_time(choice, row, candidate);
      candidate.why += candidate.chosen ? why_taken(choice, row) : why_not_taken(choice, row);
    }
    result.push_back(std::move(candidate));
  }
  return result;
}

}  // namespace tutti
