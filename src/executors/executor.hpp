// What runs operations: kernels on peers' memory, copy engines, NCCL, a network. A group owns its
// executors and knows them by this interface alone. An operation passes through it in this order:
//
//   add_facts     what a choice has to know of the executor's state
//   prepare       makes what the operation needs and a capture cannot make; may ask the other ranks
//   enqueue       starts it, in stream order where there are streams; answers a ticket
//   settle        the batch that it was part of has been handed over
//   has_ended     of a ticket
//
// Calls are made under the group's lock, one at a time, unless "from any thread" is said.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/deadline.hpp"
#include "executors/planned_operation.hpp"
#include "executors/services.hpp"
#include "planning/request.hpp"
#include "tutti/status.hpp"

namespace tutti {

// Operations, also of several groups of this process, that are handed over together by one thread.
class Batch {
 public:
  virtual ~Batch() = default;
  // Whether beginning the one begins the other.
  virtual bool is_same(const Batch& other) const { return this == &other; }
  virtual Status begin() = 0;
  virtual Status end() = 0;
};

class Executor {
 public:
  virtual ~Executor() = default;

  // What an algorithm's descriptor calls it: Algorithm::executor.
  virtual std::string_view name() const = 0;

  // Where an operation's buffers lie.
  struct Buffers {
    const void* input = nullptr;
    const void* output = nullptr;
    const SymmetricSegment* input_segment = nullptr;  // null: plain
    const SymmetricSegment* output_segment = nullptr;
  };
  // Fills in what a choice depends on: the same on every rank. Null: a question about any call,
  // whatever may have to be made for it.
  virtual void add_facts(Request&, const Buffers*) const {}

  // Whether preparing the call may ask the other ranks something: each rank then needs a thread of
  // its own.
  virtual bool may_exchange(const Call&) const { return false; }

  // kPlanAgain: it has turned out, on every rank, that the chosen algorithm cannot run.
  enum class Ready : std::uint8_t { kYes, kPlanAgain };
  virtual Result<Ready> prepare(PlannedOperation&) { return Ready::kYes; }

  // Collective: makes all that prepare() might have to make, for algorithms with these Needs.
  virtual Status prepare_all(unsigned) { return Status::ok(); }

  // Null where operations need no batch.
  virtual Batch* batch() { return nullptr; }

  // Returns once the operation is under way. A failure that leaves the group usable (kUnsupported,
  // kInvalidArgument, kUnavailable) has started nothing.
  virtual Result<Ticket> enqueue(PlannedOperation& operation) = 0;
  // Whatever enqueue() returned. `handed_over`: what the end of the batch said.
  virtual Status settle(PlannedOperation&, const Status& handed_over) { return handed_over; }

  // Whether the operation with this ticket has ended on this rank. From any thread.
  virtual bool has_ended(Ticket ticket) = 0;
  // The highest sequence number up to which, of the operations to `started`, all that this executor
  // was given have ended. From any thread.
  virtual std::uint64_t ended_through(std::uint64_t started) = 0;
  // The oldest operation that has not ended, in words for ranks that wait for this one; empty where
  // there is none. Nothing where waits of this executor know for whom they are. From any thread.
  virtual std::optional<std::string> position() { return std::nullopt; }

  // What is wrong or late by now, for which the group then fails. From any thread.
  virtual Status check() { return Status::ok(); }
  // Likewise, of what the executor knows without asking the device.
  virtual Status known_error() { return Status::ok(); }
  // The group has failed: nothing more is waited for. Does not block. From any thread, and again.
  virtual void cancel() {}
  // Waits until this rank's operations have ended; those that do not by then fail the group.
  virtual void drain(Deadline) {}
  virtual void close(Deadline) {}

  // Collective: symmetric memory that was allocated.
  virtual Status add_segment(const SymmetricSegment&) { return Status::ok(); }
  // This rank's part of it is about to be unmapped.
  virtual void remove_segment(const std::byte*) {}
};

}  // namespace tutti
