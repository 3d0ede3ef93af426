// Messages between pairs of ranks: which row they go by, and where their chunks lie. Nothing here
// is known to other ranks than the two, and each end computes the same.
#include <algorithm>

#include "base/hash.hpp"
#include "base/try.hpp"
#include "executors/peer/executor.hpp"
#include "memory/symmetric_heap.hpp"

namespace tutti {

Status PeerExecutor::add_messages(PlannedOperation& operation, Launch& launch) {
  const Call& call = operation.call;
  Messages& messages = launch.messages;
  messages = {};
  messages.ranks = size();
  messages.slot_bytes = layout_.message_slot_bytes(size());
  messages.counts = engine_->memory().messages;
  messages.windows = engine_->memory().windows;
  const SymmetricSegment* const memory = layout_.early_messages ? early_.get() : own_.get();
  for (int r = 0; memory != nullptr && r < size(); ++r) {
    messages.memory.at[r] = memory->at[r] + layout_.message_offset();
  }
  OperationPlan& plan = operation.plan;
  plan.blocks = 1;
  for (const MessageCall& message : call.messages) {
    TUTTI_ASSIGN(const OperationPlan one, group_.plan_message(message, call, operation.captured()));
    add_message(message, one, messages);
    plan.blocks = std::max(plan.blocks, one.blocks);
  }
  plan.blocks = std::min(plan.blocks, kLanes);
  plan.threads = static_cast<int>(round_up(static_cast<std::size_t>(plan.threads), 64));
  return Status::ok();
}

void PeerExecutor::add_message(const MessageCall& call, const OperationPlan& plan,
                               Messages& messages) {
  Message& message = messages.at[messages.number++];
  message = {.input = static_cast<const std::byte*>(call.input),
             .output = static_cast<std::byte*>(call.output),
             .bytes = call.bytes(),
             .chunk_bytes = kPacketChunk,
             .peer = call.peer,
             .lanes = std::clamp(plan.blocks, 1, kLanes),
             .signature = 0,
             .window = 0,
             .offset = 0,
             .in_packets = false};
  message.in_packets = message.bytes <= most_in_packets(message.lanes) && !message.is_own();
  if (!message.in_packets) {
    const std::size_t part = ceil_div(message.bytes, static_cast<std::size_t>(message.lanes));
    message.chunk_bytes = std::min(messages.slot_bytes, round_up(part, 16));
    if (!message.is_sent()) point_at_output(call, message);
  }
  message.signature = signature_of(call, message);
}

// Both ends count registrations alike, so that the sender finds the place where it is.
Status PeerExecutor::add_segment(const SymmetricSegment& segment) {
  if (!segment.zero_copy() || layout_.message_bytes == 0) return Status::ok();
  const std::uint32_t window = window_of(segment.id);
  if (window == 0) return Status::ok();
  RegistrationEntry entry{};
  for (int r = 0; r < size(); ++r) entry.at.at[r] = segment.at[r];
  entry.window = window;
  return engine_->fill_window(window, entry);
}

void PeerExecutor::point_at_output(const MessageCall& call, Message& message) {
  const auto segment = group_.heap()->find(call.output, call.bytes());
  if (segment == nullptr || !segment->zero_copy()) return;
  message.window = window_of(segment->id);
  message.offset =
      static_cast<std::uint64_t>(static_cast<const std::byte*>(call.output) - segment->local);
}

// Equal at both ends exactly where they mean the same.
std::uint32_t PeerExecutor::signature_of(const MessageCall& call, const Message& message) const {
  Hash hash;
  hash.add(static_cast<std::uint64_t>(call.dtype));
  hash.add(call.count);
  hash.add(static_cast<std::uint64_t>(message.lanes));
  hash.add(message.chunk_bytes);
  return signature_from(hash.value());
}

}  // namespace tutti
