#include "executors/peer/layout.hpp"

#include <algorithm>

#include "base/knobs.hpp"

namespace tutti {

std::size_t Layout::message_slot_bytes(int ranks) const {
  constexpr std::size_t kLeast = 256, kMost = 2 * kMoversBatch;
  if (ranks == 1) return kLeast;  // its messages to itself need none
  const std::size_t packets = Messages::packet_slots_bytes(ranks);
  const std::size_t slots = static_cast<std::size_t>(ranks - 1) * kLanes * kChunkSlots;
  if (message_bytes < packets + slots * kLeast) return 0;
  const std::size_t most = std::min((message_bytes - packets) / slots, kMost);
  const std::size_t unit = most < kMoversBatch ? kLeast : kMoversBatch;
  return most / unit * unit;
}

Layout layout_from(const Knobs& knobs, bool captures, int ranks) {
  const auto bytes = [&](const char* name) {
    constexpr std::int64_t kLeast = 4096;
    return round_up(static_cast<std::size_t>(std::max(knobs.integer(name), kLeast)), 256);
  };
  const auto packets = static_cast<std::size_t>(knobs.integer("TUTTI_PACKET_BYTES"));
  constexpr std::int64_t kMostChannels = 1024;
  const int channels = captures ? static_cast<int>(std::clamp<std::int64_t>(
                                      knobs.integer("TUTTI_CAPTURE_CHANNELS"), 1, kMostChannels))
                                : 0;
  const std::size_t staging = bytes("TUTTI_STAGING_BYTES");
  return {.capture_channels = channels,
          .staging_bytes = staging,
          .capture_staging_bytes = std::min(bytes("TUTTI_CAPTURE_STAGING_BYTES"), staging),
          .packet_bytes = round_up(packets, 256),
          .packet_areas = packets == 0 ? 0 : std::min(1 + channels, Layout::kMaxPacketAreas),
          .message_bytes =
              round_up(static_cast<std::size_t>(knobs.integer("TUTTI_MESSAGE_BYTES")), 256),
          .early_messages = ranks > 2};
}

}  // namespace tutti
