// Plain buffers of captured operations, which peers reach once they are registered: all together by
// finish_capture(), and those of copies, which are captured with their addresses, by the call.
#include <fmt/format.h>

#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/try.hpp"
#include "executors/peer/executor.hpp"
#include "memory/symmetric_heap.hpp"

namespace tutti {
namespace {

using Segment = std::shared_ptr<SymmetricSegment>;

Status cannot_register(const Segment& segment, std::size_t bytes, std::string_view outcome) {
  return {StatusCode::kUnsupported,
          fmt::format("a captured buffer of {} bytes cannot be registered: "
                      "{}; {}",
                      bytes, segment->why_staged, outcome)};
}

}  // namespace

PeerExecutor::LateRequest PeerExecutor::request_of(const PlannedOperation& operation, int slot) {
  return {.slot = slot,
          .row = operation.plan.algorithm,
          .input = operation.call.input,
          .output = operation.call.output,
          .sides = operation.sides,
          .uneven = is_uneven(operation.call.collective),
          .capture_id = operation.stream.capture_id};
}

// Buffers that finish_capture() will register.
Status PeerExecutor::note_late(const PlannedOperation& operation, CaptureLease& lease,
                               Launch& launch) {
  TUTTI_ASSIGN(launch.late_slot, captures_.take_late_slot(lease));
  late_requests_.push_back(request_of(operation, launch.late_slot));
  return Status::ok();
}

// No stream is asked for anything, so a capture does not forbid it.
Status PeerExecutor::register_now(const PlannedOperation& operation, CaptureLease& lease,
                                  Launch& launch) {
  TUTTI_ASSIGN(const auto registered, register_buffers({request_of(operation, -1)}));
  const auto& [input, output] = registered.front();
  for (const auto& [segment, bytes] :
       {std::pair(input, operation.sides.input), std::pair(output, operation.sides.output)}) {
    if (segment == nullptr) continue;
    if (!segment->zero_copy()) return cannot_register(segment, bytes, "choose another algorithm");
    lease.segments.push_back(segment);
  }
  launch.registered = late_buffers({input.get()}, {output.get()});
  return Status::ok();
}

// In one exchange, those that peers read or write. Where a rank has a buffer of nothing among
// uneven ones, memory that nobody touches stands for it.
Result<std::vector<PeerExecutor::Registered>> PeerExecutor::register_buffers(
    const std::vector<LateRequest>& requests) {
  std::vector<std::pair<void*, std::size_t>> ranges;
  bool alike = true;
  const auto add = [&](const void* address, std::size_t bytes) {
    if (bytes > 0) return (void)ranges.emplace_back(const_cast<void*>(address), bytes);
    ranges.emplace_back(own_->local, 1);
  };
  for (const LateRequest& request : requests) {
    alike = alike && !request.uneven;
    if (request.row->peers_read_input) add(request.input, request.sides.input);
    if (request.row->peers_write_output) add(request.output, request.sides.output);
  }
  TUTTI_ASSIGN(const auto segments, group_.register_ranges(ranges, alike));
  std::vector<Registered> registered;
  std::size_t next = 0;
  for (const LateRequest& request : requests) {
    Segment input = request.row->peers_read_input ? segments[next++] : nullptr;
    Segment output = request.row->peers_write_output ? segments[next++] : nullptr;
    registered.emplace_back(std::move(input), std::move(output));
  }
  return registered;
}

Status PeerExecutor::start_capture() {
  if (registering_ && !unfinished_) {
    return {StatusCode::kInvalidArgument, "start_capture() without finish_capture()"};
  }
  unfinished_ = false;
  late_requests_.clear();
  TUTTI_TRY(prepare_all(kNeedsNothing));
  TUTTI_TRY(sweep());
  registering_ = true;
  return Status::ok();
}

Status PeerExecutor::sweep() {
  const std::vector<int> slots = captures_.sweep();
  for (const int slot : slots) TUTTI_TRY(engine_->fill_late(slot, DeferredBuffers{}));
  captures_.give_late_slots(slots);
  return Status::ok();
}

Status PeerExecutor::finish_capture() {
  if (!registering_) {
    return {StatusCode::kInvalidArgument, "finish_capture() without start_capture()"};
  }
  const Status status = register_late_requests();
  // Nothing has been registered then, on any rank, and it may be tried again.
  unfinished_ = status.code() == StatusCode::kResourceExhausted;
  registering_ = unfinished_;
  if (!unfinished_) late_requests_.clear();
  return status;
}

Status PeerExecutor::fill_late(const LateRequest& request,
                               const std::shared_ptr<SymmetricSegment>& input,
                               const std::shared_ptr<SymmetricSegment>& output) {
  CaptureLease* const lease = captures_.find(request.capture_id);
  if (lease == nullptr) return Status::ok();
  TUTTI_TRY(engine_->fill_late(request.slot, late_buffers({input.get()}, {output.get()})));
  for (const auto& segment : {input, output}) {
    if (segment != nullptr) lease->segments.push_back(segment);
  }
  return Status::ok();
}

// All buffers noted since start_capture(). Returns the first failure; all other graphs can run.
Status PeerExecutor::register_late_requests() {
  TUTTI_ASSIGN(const auto registered, register_buffers(late_requests_));
  Status result;
  for (std::size_t k = 0; k < late_requests_.size(); ++k) {
    const LateRequest& request = late_requests_[k];
    const auto& [input, output] = registered[k];
    Status reached;
    for (const auto& [segment, bytes] :
         {std::pair(input, request.sides.input), std::pair(output, request.sides.output)}) {
      if (segment == nullptr || segment->zero_copy() || !reached.is_ok()) continue;
      reached = cannot_register(segment, bytes, "replaying its graph will fail");
    }
    if (reached.is_ok()) TUTTI_TRY(fill_late(request, input, output));
    if (result.is_ok()) result = reached;
  }
  return result;
}

}  // namespace tutti
