// What a wait that ends without success leaves behind. Not for users: Communicator::status() tells
// it in words.
#pragma once

#include <cstdint>

#include "tutti/device/threads.hpp"

namespace tutti {

// What went wrong, for the text of the failure. Filled by the first that fails; `state` is written
// last.
enum class FailureReason : std::uint32_t {
  kNone = 0,
  kTimeout,        // the deadline passed in a wait
  kAborted,        // called off from outside
  kMismatch,       // a peer runs another operation: the signatures differ
  kOverlap,        // two operations ran on one channel, or packet area, at once
  kNotRegistered,  // a captured buffer was never registered
  kOtherCount,     // a peer has another number of elements for this rank than it takes
  kTooMany,        // a count on the device is beyond what the call allows
  kLeft,           // a peer has left the group, and what is awaited of it never came
};

// What the host tells waits that go on, as bits of one word in host memory.
struct Notice {
  static constexpr std::uint32_t kAbort = 1;  // end now
  // That rank has left: all that it will ever send has been sent. A wait for it that has read this
  // polls once more before it gives up, and reads it with acquire.
  TUTTI_DEVICE static constexpr std::uint32_t left(int rank) { return 2u << rank; }
};

struct FailureRecord {
  std::uint64_t sequence;  // of the operation, as counted by its communicator
  std::uint64_t expected_epoch, seen_epoch;
  std::uint32_t expected_signature, seen_signature;
  std::int32_t waiting_rank, missing_rank;
  std::int32_t block;
  std::uint32_t reason;  // FailureReason
  std::uint64_t waited_ns;
  std::uint32_t state;   // 0 empty, 1 complete
  std::uint32_t signal;  // 1 + the channel of a signal that was waited for; 0: an operation's flag
};

// Per rank, private to it. On CUDA in device memory.
struct Control {
  // Not 0: nothing begins any more, and waits end. Read at entry and in every wait. The low half is
  // the FailureReason of the block that failed first, unless the rank was told before. The high
  // half is the host's, which on CUDA cannot compare before it writes.
  static constexpr std::uint32_t kTold = 1u << 16;
  static constexpr FailureReason reason_of(std::uint32_t poison) {
    return static_cast<FailureReason>(poison & (kTold - 1));
  }

  std::uint32_t poison;
  std::uint32_t claimed;  // who may fill the record
  std::uint64_t timeout_ns;
};

}  // namespace tutti
