#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>

#include "drivers/sockets.hpp"

namespace tutti {
namespace {

template <class Address>
Address read_as(const SocketAddress& address) {
  Address value{};
  std::memcpy(&value, address.data(), std::min(sizeof value, address.size()));
  return value;
}

sa_family_t family_of(const SocketAddress& address) {
  return address.size() < sizeof(sa_family_t) ? sa_family_t{AF_UNSPEC}
                                              : read_as<sockaddr>(address).sa_family;
}

}  // namespace

SocketAddress SocketAddress::from_system(const void* address, std::size_t bytes) {
  SocketAddress result;
  result.size_ = std::min(bytes, result.storage_.size());
  std::memcpy(result.storage_.data(), address, result.size_);
  return result;
}

Result<SocketAddress> SocketAddress::unix_path(std::string_view path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("socket path \"{}\" has {} characters, at most {} are possible; set "
                              "TUTTI_RUNTIME_DIR to a shorter directory",
                              path, path.size(), sizeof address.sun_path - 1));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return from_system(&address, offsetof(sockaddr_un, sun_path) + path.size() + 1);
}

Result<SocketAddress> SocketAddress::tcp(std::string_view host, std::uint16_t port) {
  const std::string text(host);
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  if (inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1) return from_system(&v4, sizeof v4);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  if (inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr) == 1) return from_system(&v6, sizeof v6);
  return Status(StatusCode::kInvalidArgument, fmt::format("\"{}\" is no numeric address", host));
}

SocketAddress SocketAddress::with_port(std::uint16_t port) const {
  if (family_of(*this) == AF_INET6) {
    auto address = read_as<sockaddr_in6>(*this);
    address.sin6_port = htons(port);
    return from_system(&address, sizeof address);
  }
  auto address = read_as<sockaddr_in>(*this);
  address.sin_port = htons(port);
  return from_system(&address, sizeof address);
}

SocketAddress SocketAddress::wildcard() const {
  if (family_of(*this) == AF_INET6) {
    auto address = read_as<sockaddr_in6>(*this);
    address.sin6_addr = in6addr_any;
    return from_system(&address, sizeof address);
  }
  auto address = read_as<sockaddr_in>(*this);
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  return from_system(&address, sizeof address);
}

bool SocketAddress::is_unix() const { return family_of(*this) == AF_UNIX; }

bool SocketAddress::is_loopback() const {
  if (family_of(*this) == AF_INET) {
    return ntohl(read_as<sockaddr_in>(*this).sin_addr.s_addr) >> 24 == 127;
  }
  if (family_of(*this) != AF_INET6) return is_unix();
  const auto v6 = read_as<sockaddr_in6>(*this).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
}

std::uint16_t SocketAddress::port() const {
  if (family_of(*this) == AF_INET) return ntohs(read_as<sockaddr_in>(*this).sin_port);
  if (family_of(*this) == AF_INET6) return ntohs(read_as<sockaddr_in6>(*this).sin6_port);
  return 0;
}

std::string SocketAddress::host() const {
  char text[INET6_ADDRSTRLEN] = {};
  if (family_of(*this) == AF_INET) {
    const auto v4 = read_as<sockaddr_in>(*this);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    return text;
  }
  if (family_of(*this) == AF_INET6) {
    const auto v6 = read_as<sockaddr_in6>(*this);
    inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
    return text;
  }
  if (!is_unix()) return "(no address)";
  const auto local = read_as<sockaddr_un>(*this);
  return {local.sun_path, strnlen(local.sun_path, sizeof local.sun_path)};
}

std::string SocketAddress::text() const {
  if (is_unix()) return host();
  return family_of(*this) == AF_INET6 ? fmt::format("[{}]:{}", host(), port())
                                      : fmt::format("{}:{}", host(), port());
}

Result<HostPort> parse_host_port(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("\"{}\" is not host:port: {}", text, why));
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong("there is no port");
  std::string_view host = text.substr(0, colon), digits = text.substr(colon + 1);
  const bool bracketed = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (host.empty()) return wrong("the host is empty");
  if (!bracketed && host.find(':') != std::string_view::npos) {
    return wrong("write an IPv6 address in brackets");
  }
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc{} || end != digits.data() + digits.size() || port == 0) {
    return wrong("the port is no number from 1 to 65535");
  }
  return HostPort{std::string(host), port};
}

}  // namespace tutti
