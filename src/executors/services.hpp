// What an executor may ask of the group that it works for. A group outlives its executors.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/deadline.hpp"
#include "device/kernel_args.hpp"
#include "executors/streams.hpp"
#include "operation/call.hpp"
#include "operation/operation.hpp"
#include "operation/timeout.hpp"
#include "planning/plan.hpp"
#include "tutti/status.hpp"
#include "tutti/types.hpp"

namespace tutti {

class Bootstrap;
class CudaDriver;
class SymmetricHeap;
class SymmetricSegment;
struct Topology;

class GroupServices {
 public:
  virtual ~GroupServices() = default;

  virtual Bootstrap& bootstrap() = 0;
  virtual const Topology& topology() const = 0;
  virtual CudaDriver* cuda() const = 0;  // null on the host backend
  virtual int device() const = 0;        // its CUDA ordinal
  // The deadline of what ranks do together outside operations; that of operations is its length,
  // unless a call has its own.
  virtual Deadline deadline() const = 0;
  virtual std::chrono::milliseconds timeout() const = 0;
  // That of `operation`, and who has set it.
  virtual Timeout timeout_of(const Operation& operation) const = 0;

  // Of the group. From any thread.
  virtual bool has_failed() const = 0;
  virtual Status failure() const = 0;
  // Whether a rank has left the group in order: what it has written before is there.
  virtual bool has_left(int rank) const = 0;
  // The group fails, for `cause` where it had not failed before; answers why it has. From any
  // thread.
  virtual Status fail(const Status& cause) = 0;
  // The group fails for a wait that the host watches, as if a kernel had left this record; where it
  // has failed before, the record says what that cut short. From any thread.
  virtual void report(const FailureRecord& record) = 0;
  // Likewise, of an operation that waited too long, and cannot tell for whom: the other ranks are
  // asked where they are.
  virtual void fail_waiting(const Status& cause, const std::string& operation) = 0;
  // Likewise, of one that is known to have waited for `missing`.
  virtual void fail_in(const Status& cause, const std::string& operation, int missing) = 0;
  // The answer of an exchange among the ranks. One that broke off leaves them out of step, which is
  // a failure of the group.
  virtual Status exchanged(const Status& answer) = 0;
  template <class T>
  Result<T> exchanged(Result<T> answer) {
    const Status status = exchanged(answer.status());
    return status.is_ok() ? std::move(answer) : Result<T>(status);
  }

  // What planning asked an executor for may have another answer now.
  virtual void forget_plans() = 0;

  virtual Streams& streams() = 0;
  // Null where ranks do not reach each other's memory, and why they do not.
  virtual SymmetricHeap* heap() = 0;
  virtual const std::string& why_no_heap() const = 0;
  // Collective: zeroed symmetric memory that an executor keeps until the group ends, with an
  // address of the switch where the group has those. kResourceExhausted on every rank where one
  // could not allocate. For exchanged().
  virtual Result<std::shared_ptr<SymmetricSegment>> allocate_own(std::size_t bytes,
                                                                 Deadline deadline) = 0;
  // The memory that the group keeps for itself on every rank; null where it has none. Eager
  // operations may use `staging` of it, `staging_bytes` long, in stream order. Collective where it
  // has not been made yet.
  struct OwnMemory {
    const SymmetricSegment* segment = nullptr;
    std::byte* staging = nullptr;
    std::size_t staging_bytes = 0;
  };
  virtual Result<OwnMemory> own_memory() = 0;
  // Collective: registers memory of a user's, so that it is not found by its address. Not `alike`:
  // of other sizes on each rank.
  virtual Result<std::vector<std::shared_ptr<SymmetricSegment>>> register_ranges(
      const std::vector<std::pair<void*, std::size_t>>& ranges, bool alike) = 0;
  // What a message would run on: the same at both of its ends.
  virtual Result<OperationPlan> plan_message(const MessageCall& message, const Call& call,
                                             bool captured) = 0;
  // Where this rank is, in words. From any thread.
  virtual std::string position() = 0;
};

}  // namespace tutti
