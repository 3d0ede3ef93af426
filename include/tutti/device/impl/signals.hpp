// Where signals are counted, and what a Peers carries for that.
#pragma once

#include <cstdint>

#include "tutti/device/impl/failure.hpp"

namespace tutti::device {

inline constexpr int kMaxPeers = 16;        // ranks of a group
inline constexpr int kSignalChannels = 64;  // between each two of them, in each direction

namespace impl {

// What each rank exposes to its peers: how many signals it was sent. One writer per word:
// arrived[c][s] is written by rank s alone, which never takes a signal back. Never wraps.
struct SignalMemory {
  std::uint64_t arrived[kSignalChannels][kMaxPeers];
};

// What each rank keeps for itself, so that nothing of a call is a constant: a replayed graph goes
// on counting. One user at a time per word.
struct SignalCounters {
  std::uint64_t sent[kSignalChannels][kMaxPeers];   // to each rank
  std::uint64_t taken[kSignalChannels][kMaxPeers];  // of each rank's, by waits
};

struct Signals {
  SignalMemory* of[kMaxPeers];  // by rank, as this rank addresses it
  SignalCounters* counters;     // this rank's
  Control* control;
  FailureRecord* failure;        // host memory
  const std::uint32_t* notices;  // host memory; see Notice
  std::uint64_t timeout_ns;      // 0: control->timeout_ns
};

}  // namespace impl
}  // namespace tutti::device
