// What choosing and explaining ask alike, and what a group asks, which needs no description.
#pragma once

#include <optional>

#include "base/units.hpp"
#include "planning/choose.hpp"
#include "planning/model.hpp"
#include "planning/plan.hpp"

namespace tutti {

// What is asked for, and all that may be chosen.
struct Selection {
  const Request& request;
  const Topology& topology;
  const TuningTable& table;
  Rows rows = catalogue();
};

Result<OperationPlan> select(const Selection& selection);

inline TuningTable::Key key_of(const Request& request) {
  return {request.collective, request.bytes(), !request.symmetric()};
}

// What the tables name for the size that is asked for.
struct Named {
  TuningTable::Match match;
  const Algorithm* row;
};

// By the first match that names a row which can run.
std::optional<Named> named_by_tables(const Selection& selection);

// What others published stands for: the fastest row of the family, or of the next one; null: none
// can run.
const Algorithm* published_row(const Selection& selection, const TuningEntry& entry);

// Whether the model is sure that another row is faster than that one.
bool is_doubted(const Selection& selection, const Algorithm& published);

// On the host: so much of staging is used in a pass, that the next one finds in the core's caches.
inline constexpr std::size_t kHostPassBytes = MiB;

Load load_of(const Selection& selection, const Algorithm& row);

// Whether the row is slower than tables say because pieces are no whole vectors: tables are
// measured with whole vectors.
bool is_narrow(const Selection& selection, const Algorithm& row);

// Whether the times of the entry, which names the row, hold for this request.
bool is_as_measured(const Selection& selection, const Algorithm& row, const TuningEntry& entry);

// By the model, of the rows that can run; of equal ones the first. Null: none.
const Algorithm* fastest_row(const Selection& selection);

// Where a row that a table names would stage more than it did there, a row that does not stage may
// be faster: that one, or null. Among rows that all stage, the table's order stands. If the named
// row is_narrow(), any row may be faster.
const Algorithm* overtaken_by(const Selection& selection, const Named& named);

}  // namespace tutti
