// An operation whose choices are made: it can be started without asking anybody.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "memory/symmetric_heap.hpp"
#include "operation/call.hpp"
#include "operation/operation.hpp"
#include "tutti/tuning.hpp"

namespace tutti {

class Executor;

// The number of an operation that an executor has been given: of one executor they grow.
using Ticket = std::uint64_t;

// What an executor keeps of one operation, from prepare() to settle().
class Binding {
 public:
  virtual ~Binding() = default;
};

struct PlannedOperation {
  Call call;
  Sides sides;  // in bytes
  bool in_place = false;
  Operation operation;
  Plan plan;
  bool captured = false;
  std::shared_ptr<SymmetricSegment> input, output;  // null: plain
  Executor* executor = nullptr;
  std::unique_ptr<Binding> binding;
  std::optional<Ticket> ticket;  // once it is enqueued
  int channel = 0;
  int area = 0;  // of packets and rings: the stream's (Captures::area)
  bool staged = false;
  int late_slot = -1;                 // captured, to be registered by finish_capture()
  std::optional<Messages> messages;   // of rows that send some
  std::optional<PieceCounts> counts;  // of uneven pieces
};

}  // namespace tutti
