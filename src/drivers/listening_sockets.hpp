// The sockets of this process at which it accepts connections from networks. For libraries that
// open some and give no way to close them.
#pragma once

#include <cstdint>
#include <vector>

#include "drivers/sockets.hpp"
#include "tutti/status.hpp"

namespace tutti {

struct ListeningSocket {
  int fd = -1;
  std::uint64_t inode = 0;  // tells it from another one that got the same descriptor later
  SocketAddress address;
};

// Those of IPv4 and IPv6, as /proc/self/fd has them.
Result<std::vector<ListeningSocket>> listening_sockets();

// From now on the kernel drops what strangers send to this port, so that nobody can connect. The
// socket stays, and still listens, so its owner notices nothing. Connections that were accepted
// remain. Whether it is so is tried out; where the kernel does not do it, the socket is shut, which
// its owner may complain about. Nothing is done where the socket is not there any more.
Status refuse_connections(const ListeningSocket& socket);

}  // namespace tutti
