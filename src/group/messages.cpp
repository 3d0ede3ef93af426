// Messages between pairs of ranks: which row they go by, and where their chunks lie. Nothing here
// is known to other ranks than the two, and each end computes the same.
#include <algorithm>

#include "base/hash.hpp"
#include "base/try.hpp"
#include "group/communicator_impl.hpp"
#include "planning/filter.hpp"

namespace tutti {

Result<Plan> CommunicatorImpl::plan_message(const MessageCall& message, const Call& call) {
  const std::lock_guard lock(mutex_);
  if (failure_->failed()) return failure_->status();
  TUTTI_ASSIGN(const StreamState stream, engine_->stream_state(call.stream));
  return plan_message_locked(message, call, stream.capturing);
}

// Where buffers lie is no matter: the other end would not know.
Result<Plan> CommunicatorImpl::plan_message_locked(const MessageCall& message, const Call& call,
                                                   bool captured) {
  Request request = request_for(Collective::kSendRecv, {.count = message.count,
                                                        .dtype = message.dtype,
                                                        .algorithm = call.options.algorithm,
                                                        .sm_budget = call.options.sm_budget,
                                                        .captured = captured});
  const Executor::Buffers anywhere;
  add_facts(request, &anywhere);
  TUTTI_ASSIGN(Plan plan, plan_for(request));
  if (call.options.blocks > 0) plan.blocks = call.options.blocks;
  plan.blocks = std::min(plan.blocks, blocks_within(request, topology_));
  if (call.options.threads > 0) plan.threads = call.options.threads;
  return plan;
}

Result<PlannedOperation> CommunicatorImpl::prepare_messages(PlannedOperation prepared) {
  const Call& call = prepared.call;
  const MessageCall& first = call.messages.front();
  TUTTI_ASSIGN(prepared.plan, plan_message_locked(first, call, prepared.captured));
  TUTTI_ASSIGN(const Algorithm* row, find_algorithm(call.collective, prepared.plan.algorithm));
  std::size_t bytes = 0;
  for (const MessageCall& message : call.messages) bytes += message.bytes();
  const bool alone = call.messages.size() == 1;
  prepared.operation = {.sequence = ++sequence_,
                        .row = row,
                        .count = alone ? first.count : bytes,
                        .dtype = alone ? first.dtype : DataType::kUint8,
                        .messages = static_cast<int>(call.messages.size()),
                        .peer = first.peer,
                        .sends = first.input != nullptr};
  failure_->note(prepared.operation);
  TUTTI_TRY(prepare_for_executor(prepared));
  if (prepared.executor != nullptr) return prepared;
  Messages messages{};
  messages.ranks = size();
  messages.slot_bytes = layout_.message_slot_bytes(size());
  messages.counts = engine_->memory().messages;
  messages.windows = engine_->memory().windows;
  for (int r = 0; r < size(); ++r) {
    messages.memory.at[r] = own_->at[r] + layout_.message_offset();
  }
  prepared.plan.blocks = 1;
  for (const MessageCall& message : call.messages) {
    TUTTI_ASSIGN(const Plan plan, plan_message_locked(message, call, prepared.captured));
    TUTTI_TRY(add_message(message, plan, prepared.captured, messages));
    prepared.plan.blocks = std::max(prepared.plan.blocks, plan.blocks);
  }
  prepared.plan.blocks = std::min(prepared.plan.blocks, kLanes);
  prepared.plan.threads = static_cast<int>(
      round_up(static_cast<std::size_t>(std::max(prepared.plan.threads, row->min_threads)), 64));
  prepared.messages = messages;
  return prepared;
}

Status CommunicatorImpl::add_message(const MessageCall& call, const Plan& plan, bool captured,
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
    if (!message.is_sent()) TUTTI_TRY(point_at_output(call, captured, message));
  }
  message.signature = signature_of(call, message);
  return Status::ok();
}

// Both ends count registrations alike, so that the sender finds the place where it is.
Status CommunicatorImpl::open_to_messages(const SymmetricSegment& segment) {
  if (!segment.zero_copy() || layout_.message_bytes == 0) return Status::ok();
  const std::uint32_t window = window_of(segment.id);
  if (window == 0) return Status::ok();
  RegistrationEntry entry{};
  for (int r = 0; r < size(); ++r) entry.at.at[r] = segment.at[r];
  entry.window = window;
  return engine_->fill_window(window, entry);
}

// A driver cannot be asked inside a capture.
Status CommunicatorImpl::point_at_output(const MessageCall& call, bool captured, Message& message) {
  const auto segment = heap_->find(call.output, call.bytes());
  if (segment == nullptr || !segment->zero_copy()) return Status::ok();
  if (!captured) {
    if (const Status alive = heap_->check_alive(*segment); !alive.is_ok()) return fail(alive);
  }
  message.window = window_of(segment->id);
  message.offset =
      static_cast<std::uint64_t>(static_cast<const std::byte*>(call.output) - segment->local);
  return Status::ok();
}

// Equal at both ends exactly where they mean the same.
std::uint32_t CommunicatorImpl::signature_of(const MessageCall& call,
                                             const Message& message) const {
  Hash hash;
  hash.add(static_cast<std::uint64_t>(call.dtype));
  hash.add(call.count);
  hash.add(static_cast<std::uint64_t>(message.lanes));
  hash.add(message.chunk_bytes);
  const std::uint64_t value = hash.value();
  return static_cast<std::uint32_t>(value ^ value >> 32);
}

}  // namespace tutti
