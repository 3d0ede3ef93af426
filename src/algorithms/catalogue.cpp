#include "algorithms/catalogue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "algorithms/moving.hpp"
#include "base/nearest.hpp"
#include "base/units.hpp"
#include "device/kernel_args.hpp"

namespace tutti {

std::string_view to_string(Order order) {
  switch (order) {
    case Order::kRankOrder:
      return "rank_order";
    case Order::kSameOnAllRanks:
      return "same_on_all_ranks";
    case Order::kNone:
      break;
  }
  return "none";
}

std::string_view to_string(Family family) {
  switch (family) {
    case Family::kOneShot:
      return "one_shot";
    case Family::kTwoShot:
      return "two_shot";
    case Family::kMulticast:
      return "multicast";
    case Family::kNccl:
      return "nccl";
    case Family::kOther:
      break;
  }
  return "other";
}

Result<Family> parse_family(std::string_view name) {
  for (const Family family :
       {Family::kOneShot, Family::kTwoShot, Family::kMulticast, Family::kNccl}) {
    if (to_string(family) == name) return family;
  }
  return Status(
      StatusCode::kInvalidArgument,
      fmt::format("unknown family '{}'; known are one_shot, two_shot, multicast, nccl", name));
}

std::string_view executor_of(const Algorithm& row) {
  if (!row.executor.empty()) return row.executor;
  if ((row.needs & kNeedsNetwork) != 0) return kNetworkExecutor;
  return (row.needs & kNeedsNccl) != 0 ? kNcclExecutor : kPeerExecutor;
}

bool has_ring_slots(const Algorithm& row) {
  return row.ring_directions > 0 && row.network == nullptr;
}

bool only_meets(const Algorithm& row) { return row.geometry == meeting_geometry; }

bool only_fetches(const Algorithm& row) {
  return row.program != nullptr && only_meets(row) && (row.needs & kNeedsMulticast) == 0;
}

namespace {

// The library's and a caller's; empty where there are none of these.
std::vector<Algorithm>& extended() {
  static std::vector<Algorithm> rows;
  return rows;
}

}  // namespace

void add_to_catalogue(std::span<const Algorithm> rows) {
  std::vector<Algorithm>& all = extended();
  if (all.empty()) all.assign(library_algorithms().begin(), library_algorithms().end());
  for (const Algorithm& row : rows) {
    const auto last = std::find_if(all.rbegin(), all.rend(), [&](const Algorithm& other) {
      return other.collective == row.collective;
    });
    all.insert(last.base(), row);
  }
}

std::span<const Algorithm> catalogue() {
  return extended().empty() ? library_algorithms() : std::span<const Algorithm>(extended());
}

// Those of a collective are neighbours.
std::span<const Algorithm> rows_of(Collective collective) {
  const auto all = catalogue();
  const auto first = std::ranges::find(all, collective, &Algorithm::collective);
  const auto end = std::find_if(first, all.end(),
                                [&](const Algorithm& row) { return row.collective != collective; });
  return {first, end};
}

int packet_expansion(const Algorithm& row, DataType dtype) {
  return row.packets == nullptr || is_floating(moved_as(row.collective, dtype)) ? 1 : 2;
}

PacketUse packet_use(const Algorithm& row, Extent extent, DataType dtype) {
  if (row.packets == nullptr) return {};
  extent.bytes *= packet_expansion(row, dtype);
  extent.token_bytes *= packet_expansion(row, dtype);
  return row.packets(extent);
}

RingSlots ring_slots(const Algorithm& row, std::size_t staging_bytes, int blocks,
                     std::size_t chunk_bytes) {
  if (!has_ring_slots(row)) return {};
  constexpr std::size_t kUsual = 64 * KiB, kUnit = 16;
  const std::size_t wanted = round_up(chunk_bytes == 0 ? kUsual : chunk_bytes, kUnit);
  const std::size_t slots =
      static_cast<std::size_t>(blocks) * row.ring_directions * RingSlots::kPerBlock;
  return {.chunk_bytes = std::min(wanted, staging_bytes / slots / kUnit * kUnit),
          .directions = row.ring_directions,
          .always = !row.peers_write_output};
}

int most_blocks(const Algorithm& row, std::size_t staging_bytes, bool tells_counts) {
  if (row.publishes_counts && tells_counts) return kCountBlocks;
  if (!has_ring_slots(row)) return kMaxBlocks;
  constexpr std::size_t kSmallestChunk = 256;
  const std::size_t slots = std::size_t{RingSlots::kPerBlock} * row.ring_directions;
  const std::size_t blocks = staging_bytes / (slots * kSmallestChunk);
  return static_cast<int>(std::clamp<std::size_t>(blocks, 1, kMaxBlocks));
}

Result<const Algorithm*> find_algorithm(Collective collective, std::string_view name,
                                        std::span<const Algorithm> rows) {
  for (const Algorithm& row : rows) {
    if (row.collective == collective && (row.id == name || row.name() == name)) return &row;
  }
  std::vector<std::string_view> known;
  for (const Algorithm& row : rows) {
    if (row.collective == collective) known.push_back(row.name());
  }
  return Status(StatusCode::kInvalidArgument,
                fmt::format("unknown algorithm '{}' for {}{}", name, to_string(collective),
                            alternatives(name, known)));
}

}  // namespace tutti
