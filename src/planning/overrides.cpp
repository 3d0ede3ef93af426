#include <fmt/core.h>

#include <cstdint>

#include "base/trim.hpp"
#include "base/try.hpp"
#include "base/units.hpp"
#include "planning/all_gather_matmul.hpp"
#include "planning/choose.hpp"
#include "planning/filter.hpp"

namespace tutti {
namespace {

// What follows `separator` is left in `text`; all of it is taken where there is none.
std::string_view take_until(std::string_view& text, char separator) {
  const std::size_t end = text.find(separator);
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return part;
}

Status malformed(std::string_view what) {
  return {StatusCode::kInvalidArgument,
          fmt::format("{}; write collective[:min-max]:@algorithm, for example "
                      "all_reduce:0-64K:@one_shot;all_reduce:64K-inf:@two_shot",
                      what)};
}

// One item, taken apart; `text` outlives it.
struct OverrideText {
  std::string_view head;  // a collective, or all_gather_matmul
  std::string_view name;  // of an algorithm
  std::size_t min_bytes = 0, max_bytes = SIZE_MAX;
};

Status parse_range(std::string_view text, OverrideText& result) {
  std::string_view rest = text;
  const std::string_view low = take_until(rest, '-');
  if (low.size() == text.size()) return malformed(fmt::format("'{}' is not a range", text));
  TUTTI_ASSIGN(result.min_bytes, parse_bytes(low));
  if (trim(rest) != "inf") {
    TUTTI_ASSIGN(result.max_bytes, parse_bytes(rest));
  }
  if (result.min_bytes > result.max_bytes) {
    return malformed(fmt::format("the range '{}' ends before it begins", text));
  }
  return Status::ok();
}

Result<OverrideText> take_apart(std::string_view text) {
  std::string_view rest = text;
  OverrideText result;
  result.head = trim(take_until(rest, ':'));
  if (result.head != kAllGatherMatmul) TUTTI_TRY(parse_collective(result.head).status());
  const std::string_view second = trim(take_until(rest, ':'));
  result.name = second;
  if (!rest.empty()) {
    TUTTI_TRY(parse_range(second, result));
    result.name = trim(rest);
  }
  if (result.name.empty() || result.name.front() != '@') {
    return malformed("no '@' before an algorithm's name");
  }
  result.name.remove_prefix(1);
  return result;
}

// Calls `take` with each item.
template <class Take>
Status for_each_override(std::string_view text, const Take& take) {
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view item = trim(take_until(rest, ';'));
    if (item.empty()) continue;  // a semicolon at the end
    const auto parts = take_apart(item);
    const Status status = parts.is_ok() ? take(*parts) : parts.status();
    if (!status.is_ok()) return status.with_context(fmt::format("'{}'", item));
  }
  return Status::ok();
}

}  // namespace

Result<std::vector<Override>> parse_overrides(std::string_view text, Rows rows) {
  std::vector<Override> overrides;
  TUTTI_TRY(for_each_override(text, [&](const OverrideText& item) -> Status {
    if (item.head == kAllGatherMatmul) {
      return parse_all_gather_matmul_algorithm(item.name).status();
    }
    TUTTI_ASSIGN(const Collective collective, parse_collective(item.head));
    TUTTI_ASSIGN(const Algorithm* row, find_algorithm(collective, item.name, rows));
    overrides.push_back({collective, item.min_bytes, item.max_bytes, std::string(row->id)});
    return Status::ok();
  }));
  return overrides;
}

Result<std::vector<AllGatherMatmulOverride>> parse_all_gather_matmul_overrides(
    std::string_view text) {
  std::vector<AllGatherMatmulOverride> overrides;
  TUTTI_TRY(for_each_override(text, [&](const OverrideText& item) -> Status {
    if (item.head != kAllGatherMatmul) return Status::ok();
    TUTTI_ASSIGN(const AllGatherMatmulAlgorithm algorithm,
                 parse_all_gather_matmul_algorithm(item.name));
    overrides.push_back({item.min_bytes, item.max_bytes, algorithm});
    return Status::ok();
  }));
  return overrides;
}

bool names_row_that_needs(Needs need, const Topology& topology, const TuningTable& table,
                          std::string_view tune, Rows rows) {
  const auto needs = [&](Collective collective, std::string_view name) -> const Algorithm* {
    const auto row = find_algorithm(collective, name, rows);
    return row.is_ok() && ((*row)->needs & need) != 0 ? *row : nullptr;
  };
  const auto overrides = parse_overrides(tune, rows);
  for (const Override& item : overrides.is_ok() ? *overrides : std::vector<Override>()) {
    if (needs(item.collective, item.algorithm) != nullptr) return true;
  }
  for (const TuningSource& source : table.sources()) {
    for (const TuningEntry& entry : source.entries) {
      if (!holds_for(entry, topology)) continue;
      const Algorithm* row = needs(entry.collective, entry.algorithm);
      if (row != nullptr &&
          why_not_by_itself(*row, Request{}, topology, MeasuredWith::kSymmetric).empty())
        return true;
    }
  }
  return false;
}

}  // namespace tutti
