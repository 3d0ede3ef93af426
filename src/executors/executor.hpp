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

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

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
  // Beginning one batch begins all that have the same key.
  virtual const void* key() const { return this; }
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
    std::uint64_t capture_id = 0;  // of a captured operation
    bool is_step = false;          // of a larger operation
  };
  // Fills in what a choice depends on: the same on every rank. Null: a question about any call,
  // whatever may have to be made for it.
  virtual void add_facts(Request&, const Buffers*) const {}

  // Whether preparing the call may ask the other ranks something: each rank then needs a thread of
  // its own.
  virtual bool may_exchange(const Call&) const { return false; }
  // Likewise, if the call is planned with one of this executor's algorithms.
  virtual bool must_exchange(const Call&) const { return false; }

  // kPlanAgain: it has turned out, on every rank, that the chosen algorithm cannot run, or that
  // add_facts() has other answers.
  enum class Ready : std::uint8_t { kYes, kPlanAgain };
  virtual Result<Ready> prepare(PlannedOperation&) { return Ready::kYes; }

  // Collective: makes all that prepare() might have to make, for algorithms with these Needs.
  virtual Status prepare_all(unsigned) { return Status::ok(); }

  // Null where operations need no batch.
  virtual Batch* batch() { return nullptr; }

  // Returns once the operation is under way; on the host backend executors of peers' memory return
  // when it has ended.
  virtual Result<Ticket> enqueue(PlannedOperation& operation) = 0;
  // Whether such a failure of enqueue() or settle() has started nothing: the group goes on.
  virtual bool leaves_usable(const PlannedOperation&, const Status& failure) const {
    return started_nothing(failure.code());
  }
  // Whatever enqueue() returned, where the operation is still bound. `handed_over`: what the end of
  // the batch said.
  virtual Status settle(PlannedOperation&, const Status& handed_over) { return handed_over; }

  // On the host backend: returns once has_ended() may say so, or earlier, to be called again.
  virtual void await(Ticket) { std::this_thread::sleep_for(std::chrono::microseconds(20)); }
  // Of one that has failed on the host, which its group has told the others: returns once no other
  // rank touches its buffers.
  virtual void await_users(const PlannedOperation&) {}
  // Whether the operation with this ticket has ended on this rank. From any thread.
  virtual bool has_ended(Ticket ticket) = 0;
  // The highest sequence number up to which, of the operations to `started`, all that this executor
  // was given have ended. From any thread.
  virtual std::uint64_t ended_through(std::uint64_t started) = 0;
  // Whether waits in its operations do not tell for which rank they wait: ranks then ask each other
  // where they are. From any thread.
  virtual bool waits_blindly() const { return false; }
  // Of one that waits blindly, or whose waits leave no record (words()): its oldest operation that
  // has not ended, or that a failure has cut short, in words for the other ranks; empty where there
  // is none. From any thread.
  virtual std::string position() { return {}; }

  // What is wrong or late by now, for which the group then fails. From any thread.
  virtual Status check() { return Status::ok(); }
  // Likewise, of what the executor knows without asking the device.
  virtual Status known_error() { return Status::ok(); }
  // The group has failed: operations that have not begun do nothing any more, and those that do not
  // wait by themselves for that end soon. Does not block. From any thread, and again.
  virtual void hear_of_failure() {}
  // Likewise, once ranks have said where they are: nothing more is waited for.
  virtual void cancel() {}
  // Waits until this rank's operations have ended; those that do not by then fail the group.
  virtual void drain(Deadline) {}
  virtual void close(Deadline) {}
  // The deadline of waits that have none of their own, from now on. From any thread.
  virtual Status set_timeout(std::chrono::nanoseconds) { return Status::ok(); }

  // Collective: memory that peers reach was allocated or registered.
  virtual Status add_segment(const SymmetricSegment&) { return Status::ok(); }
  // This rank's part of what was allocated is about to be unmapped.
  virtual void remove_segment(const std::byte*) {}

 protected:
  // A caller's mistake, or something that is not there.
  static bool started_nothing(StatusCode code) {
    return code == StatusCode::kUnsupported || code == StatusCode::kInvalidArgument ||
           code == StatusCode::kUnavailable;
  }
};

}  // namespace tutti
