#include "planning/selection.hpp"

#include <algorithm>

#include "planning/access.hpp"
#include "planning/filter.hpp"
#include "planning/rings.hpp"

namespace tutti {

namespace {

// Whether the row does for this request what it does where peers reach the buffers: it does not
// stage, or it stages those as well, in one pass.
bool stages_as_symmetric(const Selection& selection, const Algorithm& row) {
  if (!goes_through_staging(row, selection.request, selection.topology)) return true;
  return stages_any_buffer(row) && passes_of(load_of(selection, row)) <= 1;
}

}  // namespace

bool is_narrow(const Selection& selection, const Algorithm& row) {
  return slowdown(row, width_of_pieces(selection.request, selection.topology)) > 1;
}

bool is_as_measured(const Selection& selection, const Algorithm& row, const TuningEntry& entry) {
  return !is_narrow(selection, row) && (entry.plain || stages_as_symmetric(selection, row));
}

Load load_of(const Selection& selection, const Algorithm& row) {
  const Request& request = selection.request;
  Load load{selection.topology.ranks, request.bytes(), 0};
  load.sent = packet_expansion(row, request.dtype);
  load.width = width_of_pieces(request, selection.topology);
  if (goes_through_staging(row, request, selection.topology)) {
    load.staging_bytes =
        request.staging_bytes > 0 ? request.staging_bytes : std::max<std::size_t>(load.bytes, 1);
    if (selection.topology.backend == Backend::kHost) {
      load.staging_bytes = std::min(load.staging_bytes, kHostPassBytes);
    }
    const Sides sides = sides_of(request.collective, load.bytes, 0, load.ranks);
    load.staged_bytes = row.peers_write_output ? sides.output : sides.input;
  }
  return load;
}

namespace {

// Without being told to.
bool may_take(const Selection& selection, const Algorithm& row, MeasuredWith measured) {
  const auto& [request, topology, table, rows] = selection;
  return why_not_unnamed(row, request, topology).empty() &&
         why_not_by_itself(row, request, topology, measured).empty();
}

double expected_us(const Selection& selection, const Algorithm& row) {
  return predicted_us(row, load_of(selection, row), selection.topology);
}

// By the model, of the rows that can run and that `admits`; of equal ones the first. Null: none.
template <class Admits>
const Algorithm* fastest(const Selection& selection, Admits admits) {
  const Algorithm* best = nullptr;
  double best_us = 0;
  for (const Algorithm& row : selection.rows) {
    if (row.collective != selection.request.collective || !admits(row)) continue;
    if (!may_take(selection, row, MeasuredWith::kNothing)) continue;
    if (ring_meant(selection, row, nullptr).row != &row) continue;
    const double us = expected_us(selection, row);
    if (best != nullptr && us >= best_us) continue;
    best = &row;
    best_us = us;
  }
  return best;
}

// Of those of a family that can run, by the model.
const Algorithm* fastest_of(const Selection& selection, std::string_view family) {
  return fastest(selection, [family](const Algorithm& row) {
    return to_string(row.family) == name_of_id(family);
  });
}

// A choice of others', or one that was measured with other buffers, is left for a predicted one
// only if that is better by more than the model errs (docs/internals/performance_notes.md).
constexpr double kDoubt = 1.25;

}  // namespace

const Algorithm* published_row(const Selection& selection, const TuningEntry& entry) {
  const Algorithm* best = fastest_of(selection, entry.algorithm);
  return best != nullptr ? best : fastest_of(selection, entry.runner_up);
}

// Their times are of other kernels: which of two families is ahead may be another one here. The
// model is fitted to our own on Hopper's NVLink, and has a say there alone; of a switch it knows
// nothing that was measured.
bool is_doubted(const Selection& selection, const Algorithm& published) {
  if (!is_fitted(selection.topology)) return false;
  if ((published.needs & kNeedsMulticast) != 0) return false;
  if (!stages_as_symmetric(selection, published)) return false;  // see overtaken_by()
  const Algorithm* best = fastest_row(selection);
  return best != nullptr &&
         kDoubt * expected_us(selection, *best) < expected_us(selection, published);
}

namespace {

// What an entry stands for, if it can run; else null.
const Algorithm* row_of(const Selection& selection, const TuningEntry& entry) {
  if (entry.provenance == Provenance::kPublished) {
    const Algorithm* best = published_row(selection, entry);
    return best != nullptr && !is_doubted(selection, *best) ? best : nullptr;
  }
  // A cache may name a row of another build.
  const auto row = find_algorithm(selection.request.collective, entry.algorithm, selection.rows);
  if (!row.is_ok()) return nullptr;
  const Algorithm* meant = ring_meant(selection, **row, &entry).row;
  return meant != nullptr && may_take(selection, *meant, measured_by(entry)) ? meant : nullptr;
}

}  // namespace

const Algorithm* fastest_row(const Selection& selection) {
  return fastest(selection, [](const Algorithm&) { return true; });
}

const Algorithm* overtaken_by(const Selection& selection, const Named& named) {
  if (is_as_measured(selection, *named.row, *named.match.entry)) return nullptr;
  const bool narrow = is_narrow(selection, *named.row);
  const Algorithm* other = fastest(selection, [&selection, narrow](const Algorithm& row) {
    return narrow || !goes_through_staging(row, selection.request, selection.topology);
  });
  if (other == nullptr) return nullptr;
  return kDoubt * expected_us(selection, *other) < expected_us(selection, *named.row) ? other
                                                                                      : nullptr;
}

std::optional<Named> named_by_tables(const Selection& selection) {
  const Request& request = selection.request;
  for (const auto& match : selection.table.matches(key_of(request), selection.topology)) {
    const Algorithm* row = row_of(selection, *match.entry);
    if (row != nullptr) return Named{match, row};
  }
  return std::nullopt;
}

}  // namespace tutti
