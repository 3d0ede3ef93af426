#include "drivers/network_interfaces.hpp"

#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ifaddrs.h>
#include <memory>
#include <utility>

#include "base/system_error.hpp"

namespace tutti {
namespace {

// Bridges and ends of links to containers and virtual machines of this host. Hosts give them the
// same addresses, so they lead to no other host.
constexpr std::string_view kInsideHost[] = {"docker", "br-",     "virbr",  "veth", "cni",
                                            "cali",   "flannel", "podman", "lxc",  "lxd"};

struct Prefix {
  std::array<std::uint8_t, 2> bytes;
  unsigned bits;  // at most 16

  bool holds(const std::uint8_t* address) const {
    const unsigned mask = 0xFFFFU << (16 - bits) & 0xFFFFU;
    const unsigned first = static_cast<unsigned>(address[0]) << 8 | address[1];
    const unsigned own = static_cast<unsigned>(bytes[0]) << 8 | bytes[1];
    return (first & mask) == (own & mask);
  }
};
constexpr Prefix kPrivate4[] = {
    {{10, 0}, 8}, {{172, 16}, 12}, {{192, 168}, 16}, {{127, 0}, 8}, {{169, 254}, 16}};
constexpr Prefix kPrivate6[] = {{{0xFC, 0}, 7}, {{0xFE, 0x80}, 10}};

bool in_any(std::span<const Prefix> prefixes, const std::uint8_t* address) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [address](const Prefix& prefix) { return prefix.holds(address); });
}

bool starts_with_any(std::string_view name, std::span<const std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [name](std::string_view prefix) { return name.starts_with(prefix); });
}

std::string names_of(std::span<const NetworkInterface> interfaces) {
  std::vector<std::string_view> names;
  for (const NetworkInterface& one : interfaces) names.emplace_back(one.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

using Chosen = std::vector<const NetworkInterface*>;

Chosen without_names(std::span<const NetworkInterface> present) {
  Chosen chosen;
  for (const NetworkInterface& one : present) {
    if (!one.loopback && !starts_with_any(one.name, kInsideHost)) chosen.push_back(&one);
  }
  if (!chosen.empty()) return chosen;
  for (const NetworkInterface& one : present) {
    if (one.loopback) chosen.push_back(&one);
  }
  return chosen;
}

Status check_private(const Chosen& chosen) {
  for (const NetworkInterface* one : chosen) {
    for (const SocketAddress& address : one->addresses) {
      if (is_private_address(address)) continue;
      return {StatusCode::kPermission,
              fmt::format("interface {} has the public address {}, and whoever reaches a port of "
                          "UCX can write to this process: name the interface of a private network "
                          "(TUTTI_SOCKET_IFNAME=NAME), or set TUTTI_TRUST_NETWORK=1 if nobody "
                          "else can send to these addresses",
                          one->name, address.host())};
    }
  }
  return {};
}

}  // namespace

Result<std::vector<NetworkInterface>> list_network_interfaces() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return system_failure("listing network interfaces", errno);
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(first, &::freeifaddrs);
  std::vector<NetworkInterface> found;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const std::size_t bytes = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    auto at = std::find_if(found.begin(), found.end(), [entry](const NetworkInterface& one) {
      return one.name == entry->ifa_name;
    });
    if (at == found.end()) {
      at = found.insert(at, {entry->ifa_name, {}, (entry->ifa_flags & IFF_LOOPBACK) != 0});
    }
    at->addresses.push_back(SocketAddress::from_system(entry->ifa_addr, bytes));
  }
  return found;
}

bool is_private_address(const SocketAddress& address) {
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  if (address.size() == sizeof v4) {
    std::memcpy(&v4, address.data(), sizeof v4);
    std::uint8_t bytes[sizeof v4.sin_addr];
    std::memcpy(bytes, &v4.sin_addr, sizeof bytes);
    return v4.sin_family == AF_INET && in_any(kPrivate4, bytes);
  }
  if (address.size() != sizeof v6) return false;
  std::memcpy(&v6, address.data(), sizeof v6);
  const std::uint8_t* bytes = v6.sin6_addr.s6_addr;
  if (v6.sin6_family != AF_INET6) return false;
  if (IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr)) return true;
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) return in_any(kPrivate4, bytes + 12);
  return in_any(kPrivate6, bytes);
}

bool names_interface(std::string_view names, std::string_view name) {
  const bool all_but = names.starts_with('^');
  if (all_but) names.remove_prefix(1);
  const bool exact = names.starts_with('=');
  if (exact) names.remove_prefix(1);
  bool named = false;
  while (!names.empty()) {
    const std::size_t end = std::min(names.find(','), names.size());
    const std::string_view one = names.substr(0, end);
    named = named || (!one.empty() && (exact ? name == one : name.starts_with(one)));
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return named != all_but;
}

Result<std::vector<std::string>> choose_interfaces(std::span<const NetworkInterface> present,
                                                   std::string_view names, bool trust) {
  Chosen chosen;
  if (names.empty()) {
    chosen = without_names(present);
    if (!trust) {
      if (Status status = check_private(chosen); !status.is_ok()) return status;
    }
  }
  for (const NetworkInterface& one : present) {
    if (!names.empty() && names_interface(names, one.name)) chosen.push_back(&one);
  }
  if (chosen.empty()) {
    return Status(StatusCode::kUnavailable,
                  names.empty()
                      ? std::string("no network interface is up")
                      : fmt::format("TUTTI_SOCKET_IFNAME={} names no interface that is up; there "
                                    "are {}",
                                    names, names_of(present)));
  }
  std::vector<std::string> result;
  for (const NetworkInterface* one : chosen) result.push_back(one->name);
  return result;
}

}  // namespace tutti
