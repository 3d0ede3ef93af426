#include "bootstrap/held_ports.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "base/fd.hpp"
#include "base/try.hpp"

namespace tutti {
namespace {

class HeldPorts {
 public:
  static HeldPorts& process() {
    static HeldPorts& ports = *new HeldPorts;  // for threads that end after main()
    return ports;
  }

  void add(const std::string& host, std::uint16_t port, Fd socket) {
    const std::lock_guard lock(mutex_);
    held_.push_back({host, port, std::move(socket)});
    if (held_.size() > kMaxHeldPorts) held_.pop_front();
  }
  void remove(const std::string& host, std::uint16_t port) {
    const std::lock_guard lock(mutex_);
    std::erase_if(held_, [&](const Held& held) { return held.host == host && held.port == port; });
  }

 private:
  struct Held {
    std::string host;
    std::uint16_t port = 0;
    Fd socket;
  };

  std::mutex mutex_;
  std::deque<Held> held_;  // oldest first
};

}  // namespace

Result<std::uint16_t> hold_free_port(SocketDriver& sockets, const std::string& host,
                                     Deadline deadline) {
  TUTTI_ASSIGN(const std::vector<SocketAddress> found, sockets.resolve(host, 0, deadline));
  auto socket = sockets.hold_port(listening_address(found.front(), is_loopback_name(host)));
  if (socket.status().code() == StatusCode::kInvalidArgument) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("{}: give a port, or make the id on the host of rank 0",
                              socket.status().message()));
  }
  TUTTI_ASSIGN(Fd held, std::move(socket));
  TUTTI_ASSIGN(const SocketAddress bound, sockets.local_address(held.get()));
  HeldPorts::process().add(host, bound.port(), std::move(held));
  return bound.port();
}

void let_go_of_port(const std::string& host, std::uint16_t port) {
  HeldPorts::process().remove(host, port);
}

bool is_loopback_name(const std::string& host) {
  if (host == "localhost") return true;
  const auto numeric = SocketAddress::tcp(host, 1);
  return numeric.is_ok() && numeric->is_loopback();
}

SocketAddress listening_address(const SocketAddress& resolved, bool loopback_only) {
  return !loopback_only && resolved.is_loopback() ? resolved.wildcard() : resolved;
}

}  // namespace tutti
