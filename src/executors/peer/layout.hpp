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
// Channel 0 serves eager operations. Each other one serves the graphs that were captured on one
// stream, since these are most likely replayed one after the other: graphs of different streams may
// run at the same time, and beside eager operations. Where more streams are captured, they share
// channels. The first of them, which most programs need alone, has as much staging and as many
// packets as eager operations; the others have little staging, no rings, and few packets or none.
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
  std::size_t staging_bytes = 0;          // channel 0's, and that of the first capture channel
  std::size_t capture_staging_bytes = 0;  // of the other capture channels
  std::size_t packet_bytes = 0;           // a generation's, in a large area
  int packet_areas = 0;                   // of the first channels
  std::size_t message_bytes = 0;          // slots for messages of all other ranks; 0: none
  bool early_messages = false;            // they lie in the segment of the creation

  static constexpr int kLargeChannels = 2, kMaxPacketAreas = 4;
  static constexpr std::size_t kSmallPacketBytes = 512 * KiB;  // a generation's, at most

  static constexpr std::size_t kChannelBytes = (sizeof(ChannelMemory) + 255) / 256 * 256;

  int channels() const { return 1 + capture_channels; }
  std::size_t channel_offset(int channel) const { return kChannelBytes * channel; }
  std::size_t staging_offset(int channel) const {
    const int large = std::min(channel, kLargeChannels);
    return kChannelBytes * channels() + staging_bytes * large +
           capture_staging_bytes * (channel - large);
  }
  std::size_t staging_size(int channel) const {
    return channel < kLargeChannels ? staging_bytes : capture_staging_bytes;
  }
  // Staging for chunks that go around a ring; 0 where there are none.
  std::size_t ring_bytes(int channel) const { return channel < kLargeChannels ? staging_bytes : 0; }
  // Of a generation; 0 where there is no such area.
  std::size_t packet_room(int channel) const {
    if (channel >= packet_areas) return 0;
    return channel < kLargeChannels ? packet_bytes : std::min(packet_bytes, kSmallPacketBytes);
  }
  std::size_t packet_offset(int channel) const {
    std::size_t offset = staging_offset(channels());
    for (int c = 0; c < channel; ++c) {
      offset += sizeof(PacketMemory) + kPacketGenerations * packet_room(c);
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
};

class Knobs;

// What TUTTI_STAGING_BYTES, TUTTI_CAPTURE_CHANNELS, TUTTI_CAPTURE_STAGING_BYTES,
// TUTTI_PACKET_BYTES and TUTTI_MESSAGE_BYTES say, rounded up to 256 bytes. Staging has at least
// 4096, and that of a capture no more than that of other operations. Where nothing is captured, as
// on the host, there are no channels for captures.
Layout layout_from(const Knobs& knobs, bool captures, int ranks = 2);

}  // namespace tutti
