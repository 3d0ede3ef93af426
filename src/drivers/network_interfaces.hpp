// The network interfaces of this machine, and which of them carry messages between ranks: values,
// but for list_network_interfaces().
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "drivers/sockets.hpp"
#include "tutti/status.hpp"

namespace tutti {

// One that is up and has an address.
struct NetworkInterface {
  std::string name;  // "eth0"
  std::vector<SocketAddress> addresses;
  bool loopback = false;
};

Result<std::vector<NetworkInterface>> list_network_interfaces();

// Whether nobody outside a private network can send to it: 10/8, 172.16/12, 192.168/16, 127/8,
// 169.254/16, fc00::/7, fe80::/10, ::1.
bool is_private_address(const SocketAddress& address);

// Whether `name` is among `names`, in NCCL's grammar: "eth,ib" are prefixes, "=eth0,eth1" whole
// names, and '^' in front means all but these.
bool names_interface(std::string_view names, std::string_view name);

// Names of the interfaces that TCP uses, of those that are there. `names` (TUTTI_SOCKET_IFNAME) is
// trusted as it is. Empty: all but the loopback and those that hosts give to containers and virtual
// machines, or else the loopback. Then all their addresses have to be private, unless `trust`
// (TUTTI_TRUST_NETWORK). kUnavailable where `names` names none, or there is none; kPermission where
// an address is public.
Result<std::vector<std::string>> choose_interfaces(std::span<const NetworkInterface> present,
                                                   std::string_view names, bool trust);

}  // namespace tutti
