#include <fmt/core.h>

#include <cstdint>

#include "base/trim.hpp"
#include "base/try.hpp"
#include "base/units.hpp"
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

Status parse_range(std::string_view text, Override& result) {
  std::string_view rest = text;
  const std::string_view low = take_until(rest, '-');
  if (low.size() == text.size()) return malformed(fmt::format("'{}' is not a range", text));
  TUTTI_ASSIGN(result.min_bytes, parse_bytes(low));
  result.max_bytes = SIZE_MAX;
  if (trim(rest) != "inf") {
    TUTTI_ASSIGN(result.max_bytes, parse_bytes(rest));
  }
  if (result.min_bytes > result.max_bytes) {
    return malformed(fmt::format("the range '{}' ends before it begins", text));
  }
  return Status::ok();
}

Result<Override> parse_one(std::string_view text, Rows rows) {
  std::string_view rest = text;
  Override result;
  result.max_bytes = SIZE_MAX;
  TUTTI_ASSIGN(result.collective, parse_collective(trim(take_until(rest, ':'))));
  const std::string_view second = trim(take_until(rest, ':'));
  std::string_view name = second;
  if (!rest.empty()) {
    TUTTI_TRY(parse_range(second, result));
    name = trim(rest);
  }
  if (name.empty() || name.front() != '@') return malformed("no '@' before an algorithm's name");
  TUTTI_ASSIGN(const Algorithm* row, find_algorithm(result.collective, name.substr(1), rows));
  result.algorithm = row->id;
  return result;
}

}  // namespace

Result<std::vector<Override>> parse_overrides(std::string_view text, Rows rows) {
  std::vector<Override> overrides;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view item = trim(take_until(rest, ';'));
    if (item.empty()) continue;  // a semicolon at the end
    auto parsed = parse_one(item, rows);
    if (!parsed.is_ok()) return parsed.status().with_context(fmt::format("'{}'", item));
    overrides.push_back(*std::move(parsed));
  }
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
      if (row != nullptr && why_not_by_itself(*row, Request{}, topology, true).empty()) return true;
    }
  }
  return false;
}

}  // namespace tutti
