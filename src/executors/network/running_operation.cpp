#include "executors/network/running_operation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "algorithms/combine.hpp"

namespace tutti {
namespace {

using StepKind = NetworkStep::Kind;

// Scalars and divisors are apart from the operation.
OpKind added_as(OpKind op) {
  return op == OpKind::kAvg || op == OpKind::kPreMulSum ? OpKind::kSum : op;
}

void count_all(const NetworkPartitions& partitions,
               std::vector<std::uint32_t> ChunkedProgram::*chunks,
               std::vector<std::uint64_t>& counts) {
  const auto& last = partitions.last.*chunks;
  counts.assign(last.begin(), last.end());
  if (partitions.count == 1) return;
  for (std::size_t peer = 0; peer < counts.size(); ++peer) {
    counts[peer] += std::uint64_t{partitions.count - 1} * (partitions.full.*chunks)[peer];
  }
}

}  // namespace

void RunningOperation::begin(NetworkOperation operation,
                             std::shared_ptr<const NetworkPartitions> partitions, Place place,
                             NetworkRule omitted) {
  operation_ = std::move(operation);
  partitions_ = std::move(partitions);
  place_ = place;
  omitted_ = omitted;
  element_bytes_ = size_of(operation_.dtype);
  opened_ = completed_ = 0;
  new_outgoing_.clear();
  held_.clear();
  kept_bytes_ = 0;
  count_all(*partitions_, &ChunkedProgram::sends_to, left_to_send_);
  count_all(*partitions_, &ChunkedProgram::receives_from, left_to_receive_);
  flows_.assign(static_cast<std::size_t>(operation_.shape.ranks), {});
  began_at = {};
}

bool RunningOperation::may_open() const {
  return opened_ < partitions_->count && !slot_of(opened_).is_open;
}

std::size_t RunningOperation::scratch_bytes() const {
  return partitions_->program(opened_).scratch * element_bytes_;
}

void RunningOperation::open(NetworkScratch scratch) {
  Slot& slot = slot_of(opened_);
  slot.is_open = true;
  slot.partition = opened_++;
  slot.program = &partitions_->program(slot.partition);
  slot.scratch = std::move(scratch);
  slot.waits_for = slot.program->waits_for;
  if (omitted_ == NetworkRule::kAfter) {
    std::fill(slot.waits_for.begin(), slot.waits_for.end(), 0);
  }
  slot.flags.assign(slot.program->chunk_count(), 0);
  slot.left = slot.program->chunk_count();
  slot.ready.clear();
  slot.ready_head = 0;
  slot.outboxes.resize(flows_.size());
  for (Outbox& outbox : slot.outboxes) {
    outbox.chunks.clear();
    outbox.head = 0;
  }
  slot.kept.clear();
  for (std::uint32_t chunk = 0; chunk < slot.waits_for.size(); ++chunk) {
    if (slot.waits_for[chunk] == 0) slot.ready.push_back(chunk);
  }
  run(slot);
}

void RunningOperation::run(Slot& slot) {
  while (slot.ready_head < slot.ready.size()) {
    const std::uint32_t chunk = slot.ready[slot.ready_head++];
    execute(slot, chunk);
  }
  slot.ready.clear();
  slot.ready_head = 0;
  if (slot.is_open && slot.left == 0) close(slot);
}

void RunningOperation::execute(Slot& slot, std::uint32_t chunk) {
  const NetworkStep& step = slot.program->steps[slot.program->step_of[chunk]].what;
  switch (step.kind) {
    case StepKind::kSend:
      slot.outboxes[static_cast<std::size_t>(step.peer)].chunks.push_back(chunk);
      new_outgoing_.push_back(step.peer);
      return;
    case StepKind::kReceive: {
      const auto kept = slot.kept.find(chunk);
      if (kept == slot.kept.end()) return;
      reduce(slot, chunk, kept->second.data());
      kept_bytes_ -= kept->second.size();
      slot.kept.erase(kept);
      break;
    }
    case StepKind::kSum:
    case StepKind::kCopy:
      reduce(slot, chunk, nullptr);
      break;
  }
  finish_chunk(slot, chunk);
}

void RunningOperation::finish_chunk(Slot& slot, std::uint32_t chunk) {
  const ChunkedProgram& program = *slot.program;
  const NetworkStep& step = program.steps[program.step_of[chunk]].what;
  slot.flags[chunk] |= kDone;
  --slot.left;
  if (step.kind == StepKind::kSend) --left_to_send_[static_cast<std::size_t>(step.peer)];
  if (step.kind == StepKind::kReceive) --left_to_receive_[static_cast<std::size_t>(step.peer)];
  for (std::uint32_t k = program.dependents_at[chunk]; k < program.dependents_at[chunk + 1]; ++k) {
    std::uint32_t& waits = slot.waits_for[program.dependents[k]];
    if (waits > 0 && --waits == 0) slot.ready.push_back(program.dependents[k]);
  }
}

void RunningOperation::close(Slot& slot) {
  slot.is_open = false;
  ++completed_;
  free_scratch_.push_back(std::move(slot.scratch));
  slot.scratch = {};
}

std::byte* RunningOperation::address(const Slot& slot, const NetworkPlace& place,
                                     std::size_t offset) const {
  const std::size_t within = slot.partition * partitions_->elements;
  const std::size_t element = place.first + offset;
  switch (place.buffer) {
    case NetworkPlace::Buffer::kInput:  // is not written
      return const_cast<std::byte*>(operation_.input) + (within + element) * element_bytes_;
    case NetworkPlace::Buffer::kOutput:
      return operation_.output + (within + element) * element_bytes_;
    case NetworkPlace::Buffer::kScratch:
      break;
  }
  const bool shared = omitted_ == NetworkRule::kOwnScratch && slots_[0].scratch.memory;
  return (shared ? slots_[0] : slot).scratch.memory.get() + element * element_bytes_;
}

bool RunningOperation::is_scaled(const NetworkStep& step) const {
  return operation_.op == OpKind::kPreMulSum &&
         std::any_of(step.places.begin(), step.places.end(), [](const NetworkPlace& place) {
           return place.buffer == NetworkPlace::Buffer::kInput;
         });
}

void RunningOperation::reduce(const Slot& slot, std::uint32_t chunk, const std::byte* came) {
  const auto& step = slot.program->steps[slot.program->step_of[chunk]];
  const std::size_t offset = slot.program->range_of(chunk).first;
  reduce_into(address(slot, step.what.into, offset), slot, chunk, came);
}

void RunningOperation::reduce_into(std::byte* into, const Slot& slot, std::uint32_t chunk,
                                   const std::byte* came) {
  const NetworkStep& step = slot.program->steps[slot.program->step_of[chunk]].what;
  const auto range = slot.program->range_of(chunk);
  if (range.count == 0 || operation_.on_gpu) return;  // it was placed, or copied before
  const bool scaled = is_scaled(step);
  sources_.clear();
  scalars_.clear();
  if (came != nullptr) {
    sources_.push_back(came);
    if (scaled) scalars_.emplace_back(1);
  }
  for (const NetworkPlace& place : step.places) {
    sources_.push_back(address(slot, place, range.first));
    const bool is_input = place.buffer == NetworkPlace::Buffer::kInput;
    if (scaled) scalars_.push_back(is_input ? operation_.scalar : Scalar(1));
  }
  const int divisor = step.whole && operation_.op == OpKind::kAvg ? operation_.shape.ranks : 1;
  if (sources_.size() == 1 && !scaled && divisor == 1) {
    std::memmove(into, sources_.front(), range.count * element_bytes_);
    return;
  }
  combine(
      {operation_.dtype, added_as(operation_.op), range.count, sources_, scalars_, divisor, into});
}

std::byte* RunningOperation::place(const NetworkMessage& message, std::size_t bytes) const {
  if (!operation_.on_gpu || message.partition >= partitions_->count) return nullptr;
  const Slot& slot = slot_of(message.partition);
  if (!slot.is_open || slot.partition != message.partition) return nullptr;
  const ChunkedProgram& program = *slot.program;
  const auto& receives = program.receives[static_cast<std::size_t>(message.from)];
  if (message.step >= receives.size()) return nullptr;
  const auto& step = program.steps[receives[message.step]];
  if (message.chunk >= step.chunks) return nullptr;
  const std::uint32_t chunk = step.first_chunk + message.chunk;
  const auto range = program.range_of(chunk);
  const bool is_expected = slot.waits_for[chunk] == 0 && (slot.flags[chunk] & kArrived) == 0;
  if (!is_expected || range.count * element_bytes_ != bytes) return nullptr;
  return address(slot, step.what.into, range.first);
}

Result<bool> RunningOperation::arrived(const NetworkMessage& message, ByteView payload) {
  const auto wrong = [&](std::string_view what) {
    return Status(
        StatusCode::kMismatch,
        fmt::format("{}: message {}, chunk {} of partition {} {}: all ranks must run the "
                    "same version of tutti with the same settings",
                    operation_.text, message.step, message.chunk, message.partition, what));
  };
  if (message.partition >= partitions_->count) return wrong("is of no partition");
  Slot& slot = slot_of(message.partition);
  const bool stale = !slot.is_open || slot.partition != message.partition;
  const ChunkedProgram& program = partitions_->program(message.partition);
  const auto& receives = program.receives[static_cast<std::size_t>(message.from)];
  if (message.step >= receives.size()) return wrong("is not expected");
  const auto& step = program.steps[receives[message.step]];
  if (message.chunk >= step.chunks) return wrong("is out of range");
  const std::uint32_t chunk = step.first_chunk + message.chunk;
  const std::size_t expected = program.range_of(chunk).count * element_bytes_;
  if (payload.size() != expected) {
    return wrong(fmt::format("has {} bytes instead of {}", payload.size(), expected));
  }
  if (stale || (slot.flags[chunk] & kArrived) != 0) return false;
  if (operation_.on_gpu && payload.data() != place(message, expected) && expected != 0) {
    return wrong("is not where this rank's GPU has it");
  }
  slot.flags[chunk] |= kArrived;
  if (slot.waits_for[chunk] != 0) {
    if (omitted_ == NetworkRule::kKeep) return true;
    slot.kept.emplace(chunk, to_bytes(payload));
    kept_bytes_ += payload.size();
    return true;
  }
  reduce(slot, chunk, payload.data());
  finish_chunk(slot, chunk);
  run(slot);
  return true;
}

void RunningOperation::sent(std::uint32_t partition, std::uint32_t chunk) {
  Slot& slot = slot_of(partition);
  finish_chunk(slot, chunk);
  run(slot);
}

std::size_t RunningOperation::outgoing(int peer, std::array<Outgoing, 2>& into) const {
  std::size_t found = 0;
  for (const Slot& slot : slots_) {
    if (!slot.is_open) continue;
    const Outbox& outbox = slot.outboxes[static_cast<std::size_t>(peer)];
    if (!outbox.empty()) into[found++] = {slot.partition, outbox.chunks[outbox.head]};
  }
  if (found == 2 && into[1].partition < into[0].partition) std::swap(into[0], into[1]);
  return found;
}

void RunningOperation::take_outgoing(int peer, std::uint32_t partition) {
  Slot& slot = slot_of(partition);
  Outbox& outbox = slot.outboxes[static_cast<std::size_t>(peer)];
  ++outbox.head;
  if (!outbox.empty()) return;
  outbox.chunks.clear();
  outbox.head = 0;
}

std::size_t RunningOperation::payload_bytes(const Outgoing& send) const {
  return slot_of(send.partition).program->range_of(send.chunk).count * element_bytes_;
}

ByteView RunningOperation::payload(const Outgoing& send, Bytes& staged) {
  const Slot& slot = slot_of(send.partition);
  const NetworkStep& step = slot.program->steps[slot.program->step_of[send.chunk]].what;
  const std::size_t bytes = payload_bytes(send);
  if (bytes == 0) return {};
  if (is_scaled(step)) {
    staged.resize(bytes);
    reduce_into(staged.data(), slot, send.chunk, nullptr);
    return staged;
  }
  return {address(slot, step.places[0], slot.program->range_of(send.chunk).first), bytes};
}

NetworkMessage RunningOperation::header(const Outgoing& send) const {
  const ChunkedProgram& program = *slot_of(send.partition).program;
  const auto& step = program.steps[program.step_of[send.chunk]];
  NetworkMessage message;
  message.sequence = place_.sequence;
  message.signature = operation_.signature;
  message.partition = send.partition;
  message.step = step.ordinal;
  message.chunk = send.chunk - step.first_chunk;
  return message;
}

bool RunningOperation::needs(int peer) const {
  const auto at = static_cast<std::size_t>(peer);
  return left_to_send_[at] != 0 || left_to_receive_[at] != 0;
}

RunningOperation::Waits RunningOperation::waits() const {
  Waits waits;
  const auto add = [](std::vector<int>& ranks, int rank) {
    if (std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) ranks.push_back(rank);
  };
  for (const Slot& slot : slots_) {
    if (!slot.is_open) continue;
    for (std::uint32_t chunk = 0; chunk < slot.flags.size(); ++chunk) {
      if (slot.waits_for[chunk] != 0 || (slot.flags[chunk] & kDone) != 0) continue;
      const NetworkStep& step = slot.program->steps[slot.program->step_of[chunk]].what;
      if (step.kind == StepKind::kReceive) add(waits.to_send, step.peer);
      if (step.kind == StepKind::kSend) add(waits.to_receive, step.peer);
    }
  }
  std::sort(waits.to_send.begin(), waits.to_send.end());
  std::sort(waits.to_receive.begin(), waits.to_receive.end());
  return waits;
}

}  // namespace tutti
