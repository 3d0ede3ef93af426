#include "drivers/listening_sockets.hpp"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <fmt/format.h>
#include <linux/filter.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "base/system_error.hpp"
#include "drivers/sockets.hpp"

namespace tutti {
namespace {

int option_of(int fd, int option) {
  int value = 0;
  socklen_t bytes = sizeof value;
  return ::getsockopt(fd, SOL_SOCKET, option, &value, &bytes) == 0 ? value : 0;
}

// By its name, "socket:[1234]": other threads may close the descriptor meanwhile, which is then not
// touched. Nothing for what is no socket.
std::optional<std::uint64_t> socket_inode(int fd) {
  constexpr std::string_view kBegin = "socket:[";
  std::error_code error;
  const std::string name =
      std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", fd), error);
  if (error || !name.starts_with(kBegin)) return {};
  std::uint64_t inode = 0;
  std::from_chars(name.data() + kBegin.size(), name.data() + name.size(), inode);
  return inode;
}

std::optional<ListeningSocket> listening_at(int fd) {
  const auto inode = socket_inode(fd);
  if (!inode) return {};
  const int family = option_of(fd, SO_DOMAIN);
  if ((family != AF_INET && family != AF_INET6) || option_of(fd, SO_ACCEPTCONN) == 0) return {};
  sockaddr_storage name{};
  socklen_t bytes = sizeof name;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&name), &bytes) != 0) return {};
  return ListeningSocket{fd, *inode, SocketAddress::from_system(&name, bytes)};
}

// A filter that takes no packet, and that nothing can take off again.
bool drops_all(int fd) {
  sock_filter take_nothing = BPF_STMT(BPF_RET | BPF_K, 0);
  const sock_fprog program = {1, &take_nothing};
  const int yes = 1;
  return ::setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0 &&
         ::setsockopt(fd, SOL_SOCKET, SO_LOCK_FILTER, &yes, sizeof yes) == 0;
}

// On one host a connection is there at once, or refused.
bool takes_connections(const SocketAddress& address) {
  constexpr int kLimitMs = 20;
  auto connection = real_sockets().connect(address);
  if (!connection.is_ok()) return false;
  pollfd event = {connection->get(), POLLOUT, 0};
  return ::poll(&event, 1, kLimitMs) > 0 && real_sockets().connected(connection->get()).is_ok();
}

}  // namespace

Result<std::vector<ListeningSocket>> listening_sockets() {
  std::vector<ListeningSocket> found;
  std::error_code error;
  std::filesystem::directory_iterator at("/proc/self/fd", error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename();
    int fd = -1;
    std::from_chars(name.data(), name.data() + name.size(), fd);
    if (const auto socket = listening_at(fd)) found.push_back(*socket);
  }
  if (error) return system_failure("/proc/self/fd", error.value());
  return found;
}

Status refuse_connections(const ListeningSocket& socket) {
  const auto now = listening_at(socket.fd);
  if (!now.has_value() || now->inode != socket.inode) return {};
  if (drops_all(socket.fd) && !takes_connections(socket.address)) return {};
  if (::shutdown(socket.fd, SHUT_RDWR) != 0) return system_failure("shutting a port", errno);
  if (!takes_connections(socket.address)) return {};
  return {StatusCode::kSystem,
          fmt::format("{} takes connections after it was shut", socket.address.text())};
}

}  // namespace tutti
