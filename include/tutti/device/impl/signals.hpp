// The counters of signals, and what a Peers needs to use them.
#pragma once

#include <cstdint>

#include "tutti/device/impl/failure.hpp"

namespace tutti::device {

inline constexpr int kMaxPeers = 16;        ///< most ranks that share memory
inline constexpr int kSignalChannels = 64;  ///< from each rank to each rank

namespace impl {

// How many signals each rank has received; its peers write it. One writer per word: only rank s
// writes arrived[c][s], and only increments it. Never wraps.
struct SignalMemory {
  std::uint64_t arrived[kSignalChannels][kMaxPeers];
};

// A rank's private counters. Calls have no constants in them, so a replayed graph continues to
// count. One user at a time per word.
struct SignalCounters {
  std::uint64_t sent[kSignalChannels][kMaxPeers];   // signals sent to each rank
  std::uint64_t taken[kSignalChannels][kMaxPeers];  // signals of each rank, consumed by waits
};

struct Signals {
  SignalMemory* of[kMaxPeers];  // of each rank, as an address of this rank
  SignalCounters* counters;     // this rank's own
  Control* control;
  FailureRecord* failure;        // host memory
  const std::uint32_t* notices;  // host memory; see Notice
  std::uint64_t timeout_ns;      // 0: control->timeout_ns
};

}  // namespace impl
}  // namespace tutti::device
