// Choosing an algorithm is a pure function of values: the same on every rank, printable, testable
// without a GPU. The rows are a value, too; all but tests leave them out.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/catalogue.hpp"
#include "planning/request.hpp"
#include "planning/table.hpp"
#include "topology/topology.hpp"
#include "tutti/tuning.hpp"

namespace tutti {

using Rows = std::span<const Algorithm>;

// Order of precedence: the call > TUTTI_TUNE > user file > user cache > shipped table > what others
// published > cost model. What is published names a family: of its rows the model's fastest is
// taken. A row that is forced but cannot run is an error that says why; a row that a table names
// but that cannot run falls through to the next source. Tables are measured with symmetric buffers:
// where the row that one names would pass through staging, a row that does not takes its place if
// the model expects it to be clearly faster. kUnsupported lists each row and why not.
Result<Plan> choose(const Request& request, const Topology& topology, const TuningTable& table,
                    Rows rows = catalogue());

// Each row of the collective: whether it can run, what it is expected to take, and why it is taken
// or not.
struct Candidate {
  std::string algorithm;
  bool possible = false;
  bool chosen = false;
  std::string why;          // where the time comes from, and why or why not
  double predicted_us = 0;  // 0: unknown
  bool measured = false;    // that time is a table's, and not the model's
};
std::vector<Candidate> candidates(const Request& request, const Topology& topology,
                                  const TuningTable& table, Rows rows = catalogue());

// Where the buffers lie, as far as ranks know it, in a few words.
std::string_view buffers_text(const Request& request);

// Several lines for people: the plan, its source, then a line per candidate.
std::string explain(const Request& request, const Topology& topology, const TuningTable& table,
                    Rows rows = catalogue());

// "all_reduce:0-64K:@one_shot;all_reduce:@two_shot" - checks names and ranges. Without a range: all
// sizes. Where several hold a size, the first one counts. Items for all_gather_matmul are checked
// and left out (planning/all_gather_matmul.hpp).
struct Override {
  Collective collective = Collective::kAllReduce;
  std::size_t min_bytes = 0, max_bytes = 0;  // inclusive; "inf" is the largest size_t
  std::string algorithm;                     // id
  friend bool operator==(const Override&, const Override&) = default;
};
Result<std::vector<Override>> parse_overrides(std::string_view text, Rows rows = catalogue());

// Whether TUTTI_TUNE or a table that holds for this machine names a row with this need, which may
// therefore be chosen by itself.
bool names_row_that_needs(Needs need, const Topology& topology, const TuningTable& table,
                          std::string_view tune, Rows rows = catalogue());

}  // namespace tutti
