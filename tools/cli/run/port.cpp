#include "run/port.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/system_error.hpp"

namespace tutti::cli {

Result<Port> reserve_port() {
  Port port{.held = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  auto* const as_socket_address = reinterpret_cast<sockaddr*>(&address);
  socklen_t bytes = sizeof address;
  const int yes = 1;
  // The option comes after bind(), which would otherwise share a port that another holds.
  const bool reserved =
      port.held.valid() && ::bind(port.held.get(), as_socket_address, bytes) == 0 &&
      ::setsockopt(port.held.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
      ::getsockname(port.held.get(), as_socket_address, &bytes) == 0;
  if (!reserved) return system_failure("cannot reserve a port", errno);
  port.number = ntohs(address.sin_port);
  return port;
}

}  // namespace tutti::cli
