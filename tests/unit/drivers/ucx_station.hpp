// A wire over UCX with what arrived at it, for tests; over TCP and the loopback unless a test asks
// for more.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "drivers/ucx_library.hpp"
#include "drivers/ucx_wire.hpp"

namespace tutti::test {

// Why no wire can be opened here; empty: there is a UCX.
inline std::string why_no_ucx() {
  const auto found = find_ucx("");
  return found.is_ok() ? "" : found.status().message();
}

class Station {
 public:
  using Clock = ::tutti::Wire::Clock;
  struct Message {
    Bytes header, payload;
  };

  explicit Station(std::string transports = "tcp", GpuMemory gpus = GpuMemory::kNone) {
    WireOptions options;
    options.gpus = gpus;
    options.interfaces = "=lo";
    options.transports = std::move(transports);
    auto opened = open_ucx_wire(options);
    if (!opened.is_ok()) {
      failure = opened.status();
      return;
    }
    wire = *std::move(opened);
    wire->set_handlers({[this](ByteView header, ByteView payload) {
                          if (on_arrival) return on_arrival(header, payload);
                          arrived.push_back({to_bytes(header), to_bytes(payload)});
                        },
                        [this](WireTicket ticket) { sent.push_back(ticket); },
                        [this](int peer, const Status& why) { lost.emplace_back(peer, why); },
                        [this](ByteView header, std::size_t bytes) {
                          return on_place ? on_place(header, bytes) : nullptr;
                        }});
  }

  std::unique_ptr<::tutti::Wire> wire;
  Status failure;
  std::function<void(ByteView, ByteView)> on_arrival;  // in place of `arrived`
  std::function<std::byte*(ByteView, std::size_t)> on_place;
  std::vector<Message> arrived;
  std::vector<WireTicket> sent;
  std::vector<std::pair<int, Status>> lost;
};

// Until `holds`, with progress of all. False: it took too long.
template <class Holds>
bool progress_until(const std::vector<Station*>& stations, const Holds& holds,
                    std::chrono::milliseconds limit = std::chrono::seconds(30)) {
  const auto end = Station::Clock::now() + limit;
  while (!holds()) {
    for (Station* station : stations) station->wire->progress();
    if (Station::Clock::now() > end) return false;
  }
  return true;
}

}  // namespace tutti::test
