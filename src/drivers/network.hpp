// Whether this process can send messages over a network, and what opens a wire. Nothing is loaded
// before somebody asks: groups on one node need none of it.
#pragma once

#include <memory>

#include "drivers/wire.hpp"
#include "tutti/status.hpp"

namespace tutti {

class NetworkDriver {
 public:
  virtual ~NetworkDriver() = default;
  // kUnavailable: no library that sends messages, and what was looked for. kPermission: only
  // networks that everybody may reach. `one_host`: all ranks are on it.
  virtual Status usable(bool one_host) = 0;
  // A wire of one group. Fails likewise. `gpus`: it reaches memory of GPUs, if it can.
  virtual Result<std::unique_ptr<Wire>> open(bool one_host, bool gpus) = 0;
};

// UCX, as the settings of this process say (TUTTI_UCX_LIBRARY, TUTTI_SOCKET_IFNAME,
// TUTTI_TRUST_NETWORK).
NetworkDriver* real_network();

}  // namespace tutti
