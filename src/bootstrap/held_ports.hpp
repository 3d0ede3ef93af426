// Ports that were chosen for group ids which this process has made. Each is held by a socket that
// is bound and does not listen: the system gives it to nobody else, and rank 0 can still listen
// there, in this process or in another one of this host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/deadline.hpp"
#include "drivers/sockets.hpp"
#include "tutti/status.hpp"

namespace tutti {

// Of more ids that nobody has used, the oldest ports are let go of.
inline constexpr std::size_t kMaxHeldPorts = 64;

// A free port at `host`, which is this machine: kInvalidArgument elsewhere.
Result<std::uint16_t> hold_free_port(SocketDriver& sockets, const std::string& host,
                                     Deadline deadline);

// Rank 0 listens there now. Nothing where this process holds no such port.
void let_go_of_port(const std::string& host, std::uint16_t port);

// Names that mean loopback on every machine: nobody comes from elsewhere.
bool is_loopback_name(const std::string& host);

// Where rank 0 listens whose host has this address. A name that means loopback on its own machine
// (as /etc/hosts often has it) is for others another address: then it is every interface. Strangers
// fail the handshake.
SocketAddress listening_address(const SocketAddress& resolved, bool loopback_only);

}  // namespace tutti
