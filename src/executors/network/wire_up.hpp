// From a wire of each rank to a group that nobody else is in: ranks exchange addresses, prove to
// each other over the wire that they belong to the group, and then close the doors.
//
// Who proves what: each rank gives a nonce and its address over the bootstrap. The proof from rank
// a to rank b is Bootstrap::prove() of all nonces, all addresses, a and b. The number that all
// later messages carry is proved in the same way, so a stranger who was connected before the doors
// closed cannot make a message that is listened to.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/deadline.hpp"
#include "drivers/wire.hpp"
#include "tutti/status.hpp"

namespace tutti {

class Bootstrap;

// Opens this rank's wire.
using OpenWire = std::function<Result<std::unique_ptr<Wire>>()>;

struct WiredGroup {
  std::unique_ptr<Wire> wire;  // without handlers
  std::uint64_t id = 0;        // what messages of this group carry
  bool reaches_gpus = false;   // the wires of all ranks
};

// Collective. kUnavailable on all ranks: one could not open its wire, and why. On this rank alone,
// so the group has to hear of it: kSystem, it cannot reach another rank's address; kPermission, a
// rank did not prove itself in time. `given_up`: asked again and again.
Result<WiredGroup> wire_up(Bootstrap& bootstrap, const OpenWire& open, Deadline deadline,
                           const std::function<bool()>& given_up);

}  // namespace tutti
