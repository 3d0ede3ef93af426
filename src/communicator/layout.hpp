// Where things lie in the one symmetric segment that a communicator keeps for itself:
//
//   channel 0 | channel 1 | ... | staging of channel 0 | staging of channel 1 | ...
//
// Channel 0 serves eager operations; each capture has a channel of its own, so that graphs may
// interleave with each other and with eager operations.
#pragma once

#include <cstddef>

#include "base/units.hpp"
#include "transport/work.hpp"

namespace tutti {

struct Layout {
  int capture_channels = 0;
  std::size_t staging_bytes = 0;          // channel 0's
  std::size_t capture_staging_bytes = 0;  // each other channel's

  static constexpr std::size_t kChannelBytes = (sizeof(ChannelMemory) + 255) / 256 * 256;

  int channels() const { return 1 + capture_channels; }
  std::size_t channel_offset(int channel) const { return kChannelBytes * channel; }
  std::size_t staging_offset(int channel) const {
    const std::size_t first = kChannelBytes * channels();
    return channel == 0 ? first : first + staging_bytes + capture_staging_bytes * (channel - 1);
  }
  std::size_t staging_size(int channel) const {
    return channel == 0 ? staging_bytes : capture_staging_bytes;
  }
  std::size_t bytes() const { return staging_offset(channels()); }
};

class Knobs;

// What TUTTI_STAGING_BYTES, TUTTI_CAPTURE_CHANNELS and TUTTI_CAPTURE_STAGING_BYTES say; staging is
// rounded up to 256 bytes and never empty. The host backend captures nothing.
Layout layout_from(const Knobs& knobs, bool captures);

}  // namespace tutti
