// An operation whose choices are made: it can be started without asking anybody.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "executors/streams.hpp"
#include "memory/symmetric_heap.hpp"
#include "operation/call.hpp"
#include "operation/operation.hpp"
#include "planning/plan.hpp"

namespace tutti {

class Executor;

// The number of an operation that an executor has been given: of one executor they grow.
using Ticket = std::uint64_t;

// What an executor keeps of one operation, from prepare() to settle(). The executor owns it.
struct Binding {
  virtual ~Binding() = default;
};

struct PlannedOperation {
  Call call;
  Sides sides;  // in bytes
  bool in_place = false;
  StreamState stream;                               // as the operation met it
  std::shared_ptr<SymmetricSegment> input, output;  // null: plain
  OperationPlan plan;
  Operation operation;  // in words
  // Equal on two ranks exactly where they mean the same operation on the same symmetric buffers; 0:
  // nobody compares it.
  std::uint32_t signature = 0;
  Executor* executor = nullptr;  // null: a rank alone, whose input is copied
  Binding* binding = nullptr;
  std::optional<Ticket> ticket;  // once it is enqueued

  bool captured() const { return stream.capturing; }
};

}  // namespace tutti
