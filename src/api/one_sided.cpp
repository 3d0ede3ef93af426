// Calls on one peer's memory, and signals.
#include "tutti/one_sided.hpp"

#include <fmt/format.h>

#include "api/group.hpp"
#include "api/guard.hpp"
#include "base/try.hpp"
#include "base/units.hpp"
#include "group/communicator_impl.hpp"

namespace tutti {
namespace {

Status invalid(OneSided kind, std::string_view text) {
  return {StatusCode::kInvalidArgument, fmt::format("{}: {}", to_string(kind), text)};
}

Status check_peer(const Communicator& communicator, OneSided kind, int peer) {
  if (in_group()) return invalid(kind, "not between group_start() and group_end()");
  if (peer >= 0 && peer < communicator.size()) return Status::ok();
  return invalid(kind, fmt::format("peer {}: there are {} ranks", peer, communicator.size()));
}

Status check_channel(OneSided kind, int channel) {
  if (channel >= 0 && channel < device::kSignalChannels) return Status::ok();
  return invalid(kind, fmt::format("channel {}: there are {}", channel, device::kSignalChannels));
}

template <class AnyCall>
Status run_copy(Communicator& communicator, OneSided kind, const AnyCall& call, int channel) {
  TUTTI_TRY(check_peer(communicator, kind, call.peer));
  TUTTI_TRY(check_channel(kind, channel));
  if (static_cast<std::size_t>(call.dtype) >= kAllDataTypes.size()) {
    return invalid(kind, "unknown dtype");
  }
  const std::size_t element = size_of(call.dtype);
  if (call.count > kMostBytes / element) {
    return invalid(kind, "count overflows");
  }
  if (call.count > 0 && (call.from == nullptr || call.to == nullptr)) {
    return invalid(kind, "null buffer");
  }
  return communicator.impl().execute({.kind = kind,
                                      .from = call.from,
                                      .to = call.to,
                                      .bytes = call.count * element,
                                      .peer = call.peer,
                                      .channel = channel,
                                      .mover = call.mover,
                                      .stream = call.stream});
}

}  // namespace

Status put(Communicator& communicator, const Put& call) {
  return guarded(communicator,
                 [&]() -> Status { return run_copy(communicator, OneSided::kPut, call, 0); });
}

Status put_signal(Communicator& communicator, const Put& call, int channel) {
  return guarded(communicator, [&]() -> Status {
    return run_copy(communicator, OneSided::kPutSignal, call, channel);
  });
}

Status get(Communicator& communicator, const Get& call) {
  return guarded(communicator,
                 [&]() -> Status { return run_copy(communicator, OneSided::kGet, call, 0); });
}

Status signal(Communicator& communicator, const Signal& call) {
  return guarded(communicator, [&]() -> Status {
    constexpr OneSided kKind = OneSided::kSignal;
    TUTTI_TRY(check_peer(communicator, kKind, call.peer));
    TUTTI_TRY(check_channel(kKind, call.channel));
    return communicator.impl().execute(
        {.kind = kKind, .peer = call.peer, .channel = call.channel, .stream = call.stream});
  });
}

Status wait_signal(Communicator& communicator, const WaitSignal& call) {
  return guarded(communicator, [&]() -> Status {
    constexpr OneSided kKind = OneSided::kWaitSignal;
    TUTTI_TRY(check_peer(communicator, kKind, call.peer));
    TUTTI_TRY(check_channel(kKind, call.channel));
    constexpr std::uint64_t kMostTimes = std::uint64_t{1} << 62;  // counts are differences
    if (call.times > kMostTimes) {
      return invalid(kKind, fmt::format("times {}: at most 2^62", call.times));
    }
    if (call.timeout.count() < 0) return invalid(kKind, "a deadline must not be negative");
    return communicator.impl().execute({.kind = kKind,
                                        .peer = call.peer,
                                        .channel = call.channel,
                                        .times = call.times,
                                        .stream = call.stream,
                                        .timeout = limited(call.timeout)});
  });
}

Result<device::Peers> device_peers(Communicator& communicator, const SymmetricMemory& memory) {
  return guarded([&]() -> Result<device::Peers> {
    if (!memory) return Status(StatusCode::kInvalidArgument, "device_peers: no memory");
    auto peers = communicator.impl().device_peers(memory.data(), memory.size());
    if (peers.is_ok()) return peers;
    return peers.status().with_context("device_peers");
  });
}

}  // namespace tutti
