#include "planning/rings.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "base/units.hpp"

namespace tutti {
namespace {

const Algorithm* other_ring(Rows rows, const Algorithm& row) {
  for (const Algorithm& other : rows) {
    if (other.collective == row.collective && other.ring_directions > 0 &&
        other.ring_directions != row.ring_directions && executor_of(other) == executor_of(row)) {
      return &other;
    }
  }
  return nullptr;
}

// The costs of rings are fitted to Hopper's NVLink, on 3 and 4 ranks. More ranks than a host has
// are joined by other links.
constexpr int kMostModelled = 8;
bool model_knows_rings(const Topology& topology, const Algorithm& row) {
  return row.network == nullptr && is_fitted(topology) && topology.ranks <= kMostModelled;
}

struct Ways {
  bool both = false;
  std::string why;
};

Ways up_to(std::size_t most, std::size_t bytes) {
  if (most == 0) return {false, "one way"};
  return {bytes <= most, fmt::format("both ways up to {}", format_bytes(most))};
}

Ways automatic_ways(const Selection& selection, const Algorithm& one, const Algorithm& both,
                    const TuningEntry* entry) {
  const Topology& topology = selection.topology;
  if (entry != nullptr && entry->provenance == Provenance::kMeasured) {
    const bool compares = entry->runner_up == both.id || entry->runner_up == one.id;
    const std::string times =
        compares ? fmt::format(", {} us before {}", entry->time_us, entry->runner_up_us) : "";
    if (entry->algorithm == both.id) return {true, "both ways, measured" + times};
    if (compares) return {false, "one way, measured" + times};
  }
  if (topology.ranks <= 2) return {false, "one way, since two ranks are neighbours both ways"};
  if (!model_knows_rings(topology, one)) {
    const bool crosses = one.network != nullptr;
    const std::size_t most =
        crosses ? bidirectional_network_bytes_of(topology) : bidirectional_bytes_of(topology);
    return up_to(most, selection.request.bytes());
  }
  const double one_us = predicted_us(one, load_of(selection, one), topology);
  const double both_us = predicted_us(both, load_of(selection, both), topology);
  return {both_us < one_us,
          fmt::format("{:.1f} us one way, {:.1f} both ways, by the model", one_us, both_us)};
}

// Nothing where the setting leaves it open.
std::optional<Ways> ways_set(const Request& request) {
  const std::int64_t limit = request.bidirectional_bytes;
  if (limit == kSizeNever) return Ways{false, "one way"};
  if (limit == kSizeAlways) return Ways{true, "both ways"};
  if (limit > 0) return up_to(static_cast<std::size_t>(limit), request.bytes());
  return std::nullopt;
}

Ways ways_meant(const Selection& selection, const Algorithm& one, const Algorithm& both,
                const TuningEntry* entry) {
  const auto set = ways_set(selection.request);
  return set ? *set : automatic_ways(selection, one, both, entry);
}

}  // namespace

std::size_t bidirectional_bytes_of(const Topology& topology) {
  return topology.backend == Backend::kCuda ? bidirectional_network_bytes_of(topology) : 0;
}

std::size_t bidirectional_network_bytes_of(const Topology& topology) {
  if (topology.ranks <= 2) return 0;
  const bool recent = topology.compute >= 100;
  const std::size_t on_gpus = recent ? 2 * MiB : 512 * KiB;
  const std::size_t per_rank = topology.backend == Backend::kCuda ? on_gpus : 256 * KiB;
  return std::min(per_rank * static_cast<std::size_t>(topology.ranks),
                  recent ? 128 * MiB : 32 * MiB);
}

bool goes_both_ways(const Selection& selection) {
  const auto set = ways_set(selection.request);
  return set ? set->both
             : selection.request.bytes() <= bidirectional_network_bytes_of(selection.topology);
}

RingChoice ring_meant(const Selection& selection, const Algorithm& row, const TuningEntry* entry) {
  if (row.ring_directions == 0) return {&row, {}};
  const Algorithm* other = other_ring(selection.rows, row);
  const Algorithm* one = row.ring_directions == 1 ? &row : other;
  const Algorithm* both = row.ring_directions == 1 ? other : &row;
  if (both == nullptr) return {one, {}};
  const Ways ways = ways_meant(selection, one != nullptr ? *one : *both, *both, entry);
  return {ways.both ? both : one, fmt::format("TUTTI_RING_BIDIRECTIONAL_MAX_BYTES={}: {}",
                                              selection.request.bidirectional_bytes, ways.why)};
}

}  // namespace tutti
