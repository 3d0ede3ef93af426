// Where things lie in the two symmetric segments that a communicator keeps for itself. One is there
// from its creation on, for what one rank may do without all the others; the other one is made by
// the first operation:
//
//   signals
//   channel 0 | channel 1 | ... | staging of channel 0 | staging of channel 1 | ... | packets |
//   messages
//
// A message between two ranks of three or more does not concern the others, who would not come to
// make memory for it: in such groups the messages lie behind the signals.
//
// Channel 0 serves eager operations; each capture has a channel of its own, so that graphs may
// interleave with each other and with eager operations. Packets have an area for eager operations,
// and one for what is captured on one stream, since that is most likely replayed on one stream,
// too: a large one for the first such stream, small ones for a few more. Likewise rings, and what
// pushes through staging: they use channel 0, and the last channel, with as much staging, for the
// first stream that is captured.
// Signals are counted, whoever sends them: they have one place.
#pragma once

#include <algorithm>
#include <cstddef>

#include "base/units.hpp"
#include "device/kernel_args.hpp"
#include "device/messages.hpp"
#include "tutti/device/impl/signals.hpp"

namespace tutti {

static_assert(device::kMaxPeers == kMaxRanks);

struct Layout {
  int capture_channels = 0;
  int stream_channels = 0;                // behind them; for rings
  std::size_t staging_bytes = 0;          // channel 0's, and of stream channels
  std::size_t capture_staging_bytes = 0;  // of capture channels
  std::size_t packet_bytes = 0;           // a generation's, in a large area
  int packet_areas = 0;                   // the first one is for eager operations
  std::size_t message_bytes = 0;          // slots for messages of all other ranks; 0: none
  bool early_messages = false;            // they lie in the segment of the creation

  static constexpr int kLargePacketAreas = 2, kMaxPacketAreas = 4;
  static constexpr std::size_t kSmallPacketBytes = 512 * KiB;  // a generation's, at most

  static constexpr std::size_t kChannelBytes = (sizeof(ChannelMemory) + 255) / 256 * 256;

  int channels() const { return 1 + capture_channels + stream_channels; }
  std::size_t channel_offset(int channel) const { return kChannelBytes * channel; }
  std::size_t staging_offset(int channel) const {
    const std::size_t first = kChannelBytes * channels();
    if (channel == 0) return first;
    const int captures = std::min(channel - 1, capture_channels);
    return first + staging_bytes * (channel - captures) + capture_staging_bytes * captures;
  }
  std::size_t staging_size(int channel) const {
    return is_capture_channel(channel) ? capture_staging_bytes : staging_bytes;
  }
  // The channel of rings in an area (Captures::area), and its staging; 0 bytes where there is none.
  int ring_channel(int area) const { return area == 0 ? 0 : capture_channels + area; }
  std::size_t ring_bytes(int area) const { return area <= stream_channels ? staging_bytes : 0; }
  // Of a generation; 0 where there is no such area.
  std::size_t packet_room(int area) const {
    if (area >= packet_areas) return 0;
    return area < kLargePacketAreas ? packet_bytes : std::min(packet_bytes, kSmallPacketBytes);
  }
  std::size_t packet_offset(int area) const {
    std::size_t offset = staging_offset(channels());
    for (int a = 0; a < area; ++a) {
      offset += sizeof(PacketMemory) + kPacketGenerations * packet_room(a);
    }
    return offset;
  }
  // In the early segment or in the late one.
  std::size_t message_offset() const {
    return early_messages ? sizeof(device::impl::SignalMemory) : packet_offset(packet_areas);
  }
  // Of a slot for chunks of messages among so many ranks; 0 where there is no room for a useful
  // one.
  std::size_t message_slot_bytes(int ranks) const;
  // Of the segment that is there from the creation on; signals are its beginning.
  std::size_t early_bytes() const {
    return sizeof(device::impl::SignalMemory) + (early_messages ? all_message_bytes() : 0);
  }
  // Of the segment that the first operation makes.
  std::size_t late_bytes() const {
    return packet_offset(packet_areas) + (early_messages ? 0 : all_message_bytes());
  }
  std::size_t bytes() const { return early_bytes() + late_bytes(); }

 private:
  std::size_t all_message_bytes() const {
    return message_bytes == 0 ? 0 : sizeof(MessageMemory) + message_bytes;
  }
  bool is_capture_channel(int channel) const { return channel > 0 && channel <= capture_channels; }
};

class Knobs;

// What TUTTI_STAGING_BYTES, TUTTI_CAPTURE_CHANNELS, TUTTI_CAPTURE_STAGING_BYTES and
// TUTTI_PACKET_BYTES and TUTTI_MESSAGE_BYTES say, rounded up to 256 bytes; staging is never empty.
// The host backend captures nothing.
Layout layout_from(const Knobs& knobs, bool captures, int ranks = 2);

}  // namespace tutti
