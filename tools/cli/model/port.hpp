// One direction of a link: when messages pass that are given to it one after the other.
#pragma once

#include <algorithm>
#include <cmath>

#include "model/cluster_model.hpp"
#include "model/event_queue.hpp"

namespace tutti::model {

constexpr double kPicosecondsPerMicrosecond = 1e6;

inline Picoseconds rounded(double ps) { return std::llround(ps); }
inline Picoseconds to_picoseconds(double us) { return rounded(us * kPicosecondsPerMicrosecond); }

class Port {
 public:
  Port() = default;
  // `speed`: of the link's, as a rail has it.
  Port(const Link& link, double speed)
      : ps_per_byte_(8e3 / (link.gbit_per_s * speed)),
        wire_per_payload_(1 / link.payload_part),
        message_bytes_(link.message_bytes),
        burst_(rounded(link.burst_bytes * ps_per_byte_)),
        free_at_(-burst_) {}

  struct Passage {
    Picoseconds first_bit = 0, last_bit = 0;
  };
  // A message whose first bit is there at `first`, and whose last one at `last`. After a rest the
  // burst passes at once. Without a burst a message passes when those before it have.
  Passage pass(double payload_bytes, Picoseconds first, Picoseconds last) {
    const double bytes = payload_bytes * wire_per_payload_ + message_bytes_;
    const Picoseconds takes = rounded(bytes * ps_per_byte_);
    const Picoseconds begin = std::max(free_at_, first - burst_);
    free_at_ = begin + takes;
    bytes_ += bytes;
    busy_ += takes;
    return {std::max(first, begin), std::max(last, free_at_)};
  }

  double bytes() const { return bytes_; }
  Picoseconds busy() const { return busy_; }

 private:
  double ps_per_byte_ = 0, wire_per_payload_ = 1, message_bytes_ = 0;
  Picoseconds burst_ = 0;
  Picoseconds free_at_ = 0;  // for a message that comes later than this by what the burst takes
  double bytes_ = 0;
  Picoseconds busy_ = 0;
};

}  // namespace tutti::model
