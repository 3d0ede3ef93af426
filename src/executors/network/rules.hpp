// Rules of the network engine that a test may leave out, to see that it finds an error then. Each
// comment says what the engine does without the rule.
#pragma once

#include <cstdint>

namespace tutti {

enum class NetworkRule : std::uint8_t {
  kNone,
  kUnasked,     // much is sent unasked
  kAhead,       // what is sent unasked is of any later operation
  kAfter,       // chunks wait for nothing
  kOverlap,     // a chunk waits for one chunk of those that it overlaps
  kSent,        // a send counts as done when it is posted
  kKeep,        // what comes before its time is not kept
  kSequence,    // a message of an ended operation is taken for one of the oldest
  kOwnScratch,  // a partition opens before the scratch is free that it gets
  kPlaced,      // data on a GPU is sent before the peer has a place for it
  kRepeat,      // the credit of a partition that opens later is not given
};

}  // namespace tutti
