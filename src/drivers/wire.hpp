// Messages between the ranks of a group over a network, whatever carries them: UCX (ucx_wire.hpp),
// or a fake that delays, loses and reorders (tests/fakes/fake_wire.hpp).
//
// A wire belongs to one rank. Its calls are made by one thread at a time, but for wake(). It knows
// nothing of operations: a message is a header, which it copies, and a payload, which stays where
// it is until the message was sent. Messages may overtake each other. A message arrives whole,
// once, or not at all.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "tutti/status.hpp"

namespace tutti {

// The number of a message that was posted. They grow.
using WireTicket = std::uint64_t;

class Wire {
 public:
  using Clock = std::chrono::steady_clock;

  virtual ~Wire() = default;

  // What other ranks need to reach this one: opaque, at most kMostAddressBytes.
  virtual const Bytes& address() const = 0;
  // Rank `peer` is reached under this address from now on. Nothing is sent yet.
  virtual Status connect(int peer, ByteView address) = 0;

  // Called from inside progress(), `sent` from inside post() too. They call nothing of the wire.
  struct Handlers {
    // Both views end with the call. The wire does not know who sent a message: the header says it.
    std::function<void(ByteView header, ByteView payload)> arrived;
    // The payload of a message may be changed.
    std::function<void(WireTicket)> sent;
    // Nothing comes from this peer any more, and nothing reaches it. What it had sent arrived
    // before.
    std::function<void(int peer, const Status& why)> lost;
    // Of a message of post_from_gpu(), before its payload is here: where in memory of this rank's
    // GPU it shall be, which is the wire's until `arrived` is called with it. Null: the wire
    // receives it in memory of its own on the host, as it does where there is no such handler.
    std::function<std::byte*(ByteView header, std::size_t bytes)> place = {};
  };
  virtual void set_handlers(Handlers handlers) = 0;

  // Sends a message. It may be sent, and `sent` be called, before this returns. The header has at
  // most kMostHeaderBytes.
  virtual Result<WireTicket> post(int peer, ByteView header, ByteView payload) = 0;

  // Whether post_from_gpu() and `place` work. The thread that calls post_from_gpu() or progress()
  // then has this rank's GPU as its current device.
  virtual bool reaches_gpus() const { return false; }
  // The same as post() of a payload in memory of this rank's GPU, which is not empty. The peer may
  // place it, so it is sent no sooner than the peer knows its header.
  virtual Result<WireTicket> post_from_gpu(int /*peer*/, ByteView /*header*/,
                                           ByteView /*payload*/) {
    return Status(StatusCode::kUnsupported, "this wire does not read memory of GPUs");
  }

  // Handles what has happened. Whether anything has.
  virtual bool progress() = 0;
  // Sleeps until something may have happened, wake() is called, or it is so late. May return early.
  virtual void sleep(Clock::time_point until) = 0;
  // From any thread: ends a sleep, also one that has not begun.
  virtual void wake() = 0;

  // From now on no new connection is accepted. Those that have carried a message remain. Every pair
  // has to have exchanged one in each direction.
  virtual Status close_doors() = 0;

  // Nothing is sent or received any more; payloads and memory that was placed are the caller's when
  // it returns. Waits for no peer.
  virtual void cancel_all() = 0;

  // What runs below, in words: "UCX 1.13.1, tcp over eth0".
  virtual std::string text() const = 0;

  static constexpr std::size_t kMostHeaderBytes = 128;
  static constexpr std::size_t kMostAddressBytes = 64 * 1024;
};

}  // namespace tutti
