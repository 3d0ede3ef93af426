// What a kernel, or a host thread, is given for one operation.
#include <algorithm>

#include "base/convert.hpp"
#include "base/hash.hpp"
#include "executors/peer/executor.hpp"
#include "memory/symmetric_heap.hpp"

namespace tutti {
namespace {

std::size_t offset_in(const SymmetricSegment& segment, const void* address) {
  return static_cast<std::size_t>(static_cast<const std::byte*>(address) - segment.local);
}

}  // namespace

void PeerExecutor::fill_args(const PlannedOperation& operation, Launch& launch) const {
  const Call& call = operation.call;
  KernelArgs& args = launch.args;
  args = {};
  args.count = call.bytes() / size_of(moved_as(call.collective, call.dtype));
  args.rank = rank();
  args.ranks = size();
  args.root = call.root;
  args.blocks = std::clamp(operation.plan.blocks, 1, kMaxBlocks);
  args.sequence = operation.operation.sequence;
  if (!operation.captured()) {
    args.timeout_ns =
        static_cast<std::uint64_t>(std::chrono::nanoseconds(call.options.timeout).count());
  }
  args.input = static_cast<const std::byte*>(call.input);
  args.output = static_cast<std::byte*>(call.output);
  args.scaled_by_peers = call.op.kind == OpKind::kPreMulSum;
  if (args.scaled_by_peers) args.scalar = accumulator_bits(call.dtype, call.op.scalar);
  args.device_scalar = static_cast<const std::byte*>(call.op.device_scalar);
  args.divisor = call.op.kind == OpKind::kAvg ? size() : 1;
  args.norm = call.norm;
  point_at_buffers(operation, launch);
  point_at_own_memory(operation, launch);
  if (operation.plan.algorithm->packets != nullptr) point_at_packets(operation, launch);
  if (is_uneven(call.collective)) args.counts = &launch.counts;
  if (call.messages.empty()) {
    args.signature = signature_of(operation, launch);
  } else {
    args.messages = &launch.messages;
    args.signature = launch.messages.at[0].signature;
  }
}

void PeerExecutor::point_at_own_memory(const PlannedOperation& operation, Launch& launch) const {
  KernelArgs& args = launch.args;
  const PrivateMemory& memory = engine_->memory();
  args.epochs = memory.epochs + static_cast<std::size_t>(launch.channel) * kMaxBlocks;
  args.control = memory.control;
  args.failure = memory.failure;
  args.notices = memory.notices;
  if (own_ == nullptr) return;  // a message, that passes through none of it
  for (int r = 0; r < size(); ++r) {
    args.channels.at[r] = own_->at[r] + layout_.channel_offset(launch.channel);
    args.staging.at[r] = own_->at[r] + layout_.staging_offset(launch.channel);
  }
  if (own_->multicast != nullptr) {
    args.multicast_channel = own_->multicast + layout_.channel_offset(launch.channel);
  }
  for (int r = 0; args.stage_output && r < size(); ++r) {
    args.outputs.at[r] = args.staging.at[(rank() + 1 + r) % size()];
  }
  args.staging_bytes = layout_.staging_size(launch.channel);
  const OperationPlan& plan = operation.plan;
  const bool in_slots = plan.staged() || !plan.algorithm->peers_write_output;
  args.ring = ring_slots(*plan.algorithm, in_slots ? args.staging_bytes : kNoSlots, args.blocks,
                         plan.chunk_bytes);
  args.chunk_bytes = plan.chunk_bytes;
  if (plan.chunk_bytes > 0) {
    args.staging_bytes =
        std::clamp(round_up(plan.chunk_bytes, 256), kLeastStagingBytes, args.staging_bytes);
  }
}

void PeerExecutor::point_at_packets(const PlannedOperation& operation, Launch& launch) const {
  const Call& call = operation.call;
  const int area = launch.channel;
  for (int r = 0; r < size(); ++r) {
    const int next = (rank() + 1 + r) % size();
    launch.args.packets.memory.at[r] = own_->at[next] + layout_.packet_offset(area);
  }
  launch.args.packets.generation_bytes = layout_.packet_room(area);
  const Extent extent{call.bytes(), size(), call.norm.hidden * size_of(call.dtype)};
  launch.args.packets.slot_bytes =
      packet_use(*operation.plan.algorithm, extent, call.dtype).slot_bytes;
  launch.args.packets.launches = engine_->memory().launches + area;
}

void PeerExecutor::point_at_buffers(const PlannedOperation& operation, Launch& launch) const {
  const bool reads = operation.plan.algorithm->peers_read_input;
  const bool writes = operation.plan.algorithm->peers_write_output;
  launch.args.stage_input = operation.plan.staged() && reads;
  launch.args.stage_output = operation.plan.staged() && writes;
  if (launch.late_slot >= 0) {
    launch.args.late = engine_->memory().late + launch.late_slot;
    return;
  }
  if (launch.registered) {
    launch.args.inputs = launch.registered->inputs;
    launch.args.outputs = launch.registered->outputs;
    return;
  }
  if (operation.plan.staged() && own_->multicast != nullptr) {
    std::byte* const staging = own_->multicast + layout_.staging_offset(launch.channel);
    launch.args.multicast = {staging, staging};
  }
  if (operation.plan.access != BufferAccess::kMapped || (!reads && !writes)) return;
  const DeferredBuffers now = late_buffers(reads ? input_place(operation) : BufferPlace{},
                                           writes ? output_place(operation) : BufferPlace{});
  launch.args.inputs = now.inputs;
  launch.args.outputs = now.outputs;
  launch.args.multicast = now.multicast;
}

// In place, each rank's smaller side has a place of its own in larger ones that lie alike.
PeerExecutor::BufferPlace PeerExecutor::place_of(const PlannedOperation& operation,
                                                 std::size_t bytes, BufferPlace alone) const {
  if (!operation.in_place || bytes == operation.sides.larger()) return alone;
  return {alone.segment, alone.offset - operation.sides.place,
          operation.call.sides(1, size()).place};
}

PeerExecutor::BufferPlace PeerExecutor::input_place(const PlannedOperation& operation) const {
  return place_of(operation, operation.sides.input,
                  {operation.input.get(), offset_in(*operation.input, operation.call.input)});
}

PeerExecutor::BufferPlace PeerExecutor::output_place(const PlannedOperation& operation) const {
  return place_of(operation, operation.sides.output,
                  {operation.output.get(), offset_in(*operation.output, operation.call.output)});
}

DeferredBuffers PeerExecutor::late_buffers(const BufferPlace& input,
                                           const BufferPlace& output) const {
  DeferredBuffers buffers{};
  for (int r = 0; r < size(); ++r) {
    const int next = (rank() + 1 + r) % size();
    if (input.segment != nullptr) buffers.inputs.at[r] = input.at(r);
    if (output.segment != nullptr) buffers.outputs.at[r] = output.at(next);
  }
  if (input.segment != nullptr && input.segment->multicast != nullptr) {
    buffers.multicast.input = input.segment->multicast + input.offset;
  }
  if (output.segment != nullptr && output.segment->multicast != nullptr) {
    buffers.multicast.output = output.segment->multicast + output.offset;
  }
  buffers.ready = 1;
  return buffers;
}

// Equal on two ranks exactly where they mean the same operation on the same symmetric buffers.
std::uint32_t PeerExecutor::signature_of(const PlannedOperation& operation,
                                         const Launch& launch) const {
  const Call& call = operation.call;
  WordHash hash;
  hash.add(operation.plan.fingerprint);
  hash.add(static_cast<std::uint64_t>(call.dtype) | static_cast<std::uint64_t>(call.op.kind) << 8 |
           std::uint64_t{operation.captured()} << 16 | static_cast<std::uint64_t>(call.root) << 32);
  hash.add(call.count);
  hash.add(static_cast<std::uint64_t>(launch.channel));
  hash.add(launch.capture);
  if (call.norm.hidden > 0) {
    hash.add(call.norm.hidden);
    hash.add(__builtin_bit_cast(std::uint32_t, call.norm.epsilon));
    hash.add(static_cast<std::uint64_t>(call.norm.output_dtype));
    hash.add(__builtin_bit_cast(std::uint32_t, call.norm.scale));
  }
  if (is_uneven(call.collective)) {
    hash.add(static_cast<std::uint64_t>(call.lengths.are_on_device()));
    const bool agreed = call.lengths.are_agreed(call.collective);
    for (const std::size_t length : call.lengths.taken) hash.add(agreed ? length : 0);
  }
  if (call.step_of != nullptr) hash.add(Hash().add(*call.step_of).value());
  const OperationPlan& plan = operation.plan;
  const bool mapped = plan.access == BufferAccess::kMapped;
  if (mapped && operation.plan.algorithm->peers_read_input) {
    hash.add(operation.input->id);
    hash.add(input_place(operation).offset);
  }
  if (mapped && operation.plan.algorithm->peers_write_output) {
    hash.add(operation.output->id);
    hash.add(output_place(operation).offset);
  }
  return signature_from(hash.value());
}

}  // namespace tutti
