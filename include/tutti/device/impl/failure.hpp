// What a wait records when it fails. For the library: Communicator::status() turns it into a text.
#pragma once

#include <cstdint>

#include "tutti/device/threads.hpp"

namespace tutti {

// Why a wait failed.
enum class FailureReason : std::uint32_t {
  kNone = 0,
  kTimeout,        // the timeout passed
  kAborted,        // abort()
  kMismatch,       // a peer runs another operation: the signatures differ
  kOverlap,        // two operations used one channel or packet area at the same time
  kNotRegistered,  // a captured buffer was never registered
  kOtherCount,     // a peer sends another number of elements than this rank expects
  kTooMany,        // a count on the device is above the call's max_count
  kLeft,           // the awaited peer has left the group
};

// What the host tells running waits: bits of one word in host memory.
struct Notice {
  static constexpr std::uint32_t kAbort = 1;  // stop waiting
  // The rank has left and sends nothing more. A wait for it reads this with acquire, and then polls
  // once more before it fails.
  TUTTI_DEVICE static constexpr std::uint32_t left(int rank) { return 2u << rank; }
};

// Written by the first wait that fails, `state` last.
struct FailureRecord {
  std::uint64_t sequence;  // sequence number of the operation in its communicator
  std::uint64_t expected_epoch, seen_epoch;
  std::uint32_t expected_signature, seen_signature;
  std::int32_t waiting_rank, missing_rank;
  std::int32_t block;
  std::uint32_t reason;  // FailureReason
  std::uint64_t waited_ns;
  std::uint32_t state;   // 0 empty, 1 complete
  std::uint32_t signal;  // 1 + the awaited signal's channel; 0: the flag of an operation
};

// Private to a rank. On CUDA in device memory.
struct Control {
  // `poison` is 0 until the rank has failed. Operations read it when they start, and waits while
  // they wait. The low half is the FailureReason of the first block that failed, unless the host
  // was first. The high half is written by the host, which on CUDA cannot compare and swap.
  static constexpr std::uint32_t kTold = 1u << 16;
  static constexpr FailureReason reason_of(std::uint32_t poison) {
    return static_cast<FailureReason>(poison & (kTold - 1));
  }

  std::uint32_t poison;
  std::uint32_t claimed;  // 1: a wait has claimed the FailureRecord
  std::uint64_t timeout_ns;
};

}  // namespace tutti
