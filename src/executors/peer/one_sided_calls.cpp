// From a one-sided call to a running one. None of it takes part in what ranks do together: neither
// the lock, under which a collective may wait, nor its number, which ranks compare.
#include <fmt/format.h>

#include "base/nvtx.hpp"
#include "base/try.hpp"
#include "executors/peer/executor.hpp"
#include "executors/peer/one_sided.hpp"
#include "memory/symmetric_heap.hpp"
#include "operation/one_sided_call.hpp"

namespace tutti {

std::string_view to_string(OneSided kind) {
  constexpr std::string_view kNames[] = {"put", "get", "signal", "put_signal", "wait_signal"};
  return kNames[static_cast<std::size_t>(kind)];
}

device::impl::Signals PeerExecutor::signals(std::chrono::nanoseconds timeout) const {
  const PrivateMemory& memory = engine_->memory();
  device::impl::Signals signals{};
  for (int r = 0; r < size(); ++r) {
    signals.of[r] = reinterpret_cast<device::impl::SignalMemory*>(early_->at[r]);
  }
  signals.counters = memory.signals;
  signals.control = memory.control;
  signals.failure = memory.failure;
  signals.notices = memory.notices;
  signals.timeout_ns = static_cast<std::uint64_t>(timeout.count());
  return signals;
}

Status PeerExecutor::check_one_sided() const {
  if (group_.has_failed()) return group_.failure();
  if (group_.heap() != nullptr) return Status::ok();
  return {StatusCode::kUnavailable,
          fmt::format("no rank reaches another one's memory: {}", group_.why_no_heap())};
}

// `bytes` may be 0: then there is no memory, only signals.
Result<device::Peers> PeerExecutor::peers_at(const void* address, std::size_t bytes,
                                             bool captured) const {
  device::Peers peers{};
  peers.rank = rank();
  peers.ranks = size();
  peers.bytes = bytes;
  peers.signals = signals(std::chrono::nanoseconds(0));
  if (bytes == 0) return peers;
  const auto segment = group_.heap()->find(address, bytes);
  if (segment == nullptr) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("{} bytes at {} are not in symmetric memory of this communicator",
                              bytes, address));
  }
  if (!segment->zero_copy()) {
    return Status(StatusCode::kUnsupported,
                  fmt::format("peers cannot address this memory: {}", segment->why_staged));
  }
  if (!captured)
    TUTTI_TRY(group_.heap()->check_alive(*segment));  // a capture may not ask the driver
  const auto offset = static_cast<const std::byte*>(address) - segment->local;
  for (int r = 0; r < size(); ++r) peers.at[r] = segment->at[r] + offset;
  return peers;
}

Result<device::Peers> PeerExecutor::device_peers(const void* address, std::size_t bytes) {
  TUTTI_TRY(check_one_sided());
  return peers_at(address, bytes, false);
}

// Where a copy engine would move the bytes, and nobody asked for one: a kernel, if copies of the
// memory may have to wait for others.
Mover PeerExecutor::mover_of(const OneSidedCall& call) const {
  const bool is_free = call.mover == Mover::kAuto;
  if (!is_free || usual_mover(call.kind, call.bytes) != Mover::kCopyEngine) return call.mover;
  const auto segment = group_.heap()->find(call.place(), call.bytes);
  return segment != nullptr && segment->copies_queue ? Mover::kKernel : call.mover;
}

Status PeerExecutor::execute(const OneSidedCall& call) {
  TUTTI_TRY(check_one_sided());
  const NvtxRange range(to_string(call.kind).data());
  TUTTI_ASSIGN(const StreamState stream, group_.streams().state(call.stream));
  OneSidedWork work{};
  work.kind = call.kind;
  const auto peers = peers_at(call.place(), call.bytes, stream.capturing);
  if (!peers.is_ok()) return peers.status().with_context(to_string(call.kind));
  work.peers = *peers;
  if (!stream.capturing) work.peers.signals = signals(call.timeout);
  work.from = static_cast<const std::byte*>(call.from);
  work.to = static_cast<std::byte*>(call.to);
  work.bytes = call.bytes;
  work.peer = call.peer;
  work.channel = call.channel;
  work.times = call.times;
  return engine_->run(work, mover_of(call), call.stream);
}

}  // namespace tutti
