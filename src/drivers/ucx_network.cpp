#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "base/knobs.hpp"
#include "base/try.hpp"
#include "drivers/network_interfaces.hpp"
#include "drivers/ucx_library.hpp"
#include "drivers/ucx_wire.hpp"

namespace tutti {
namespace {

constexpr const char* kRdmaDevices = "/sys/class/infiniband";

std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> found;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    found.push_back(at->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<std::string> active_rdma_ports() {
  std::vector<std::string> ports;
  for (const auto& device : entries_of(kRdmaDevices)) {
    for (const auto& port : entries_of(device / "ports")) {
      std::string state;  // "4: ACTIVE"
      std::getline(std::ifstream(port / "state"), state);
      if (state.find("ACTIVE") == std::string::npos) continue;
      ports.push_back(device.filename().string() + ":" + port.filename().string());
    }
  }
  return ports;
}

}  // namespace

WireOptions wire_options(const Knobs& knobs) {
  WireOptions options;
  options.library = knobs.path("TUTTI_UCX_LIBRARY");
  options.interfaces = knobs.text("TUTTI_SOCKET_IFNAME");
  options.trust_network = knobs.flag("TUTTI_TRUST_NETWORK");
  return options;
}

std::string WireNetwork::text() const {
  std::string text;
  if (!tcp.empty()) text = fmt::format("tcp over {}", fmt::join(tcp, ", "));
  if (!rdma.empty()) {
    text += fmt::format("{}rdma over {}", text.empty() ? "" : ", ", fmt::join(rdma, ", "));
  }
  return text;
}

Result<WireNetwork> choose_network(const WireOptions& options, bool rdma) {
  WireNetwork network;
  if (rdma) network.rdma = active_rdma_ports();
  auto present = list_network_interfaces();
  if (present.is_ok() && options.one_host && options.interfaces.empty()) {
    std::erase_if(*present, [](const NetworkInterface& one) { return !one.loopback; });
  }
  auto tcp = present.is_ok()
                 ? choose_interfaces(*present, options.interfaces, options.trust_network)
                 : Result<std::vector<std::string>>(present.status());
  if (tcp.is_ok()) {
    network.tcp = *std::move(tcp);
  } else if (network.rdma.empty() || !options.interfaces.empty()) {
    return tcp.status();
  }
  return network;
}

Status check_ucx(const WireOptions& options) {
  TUTTI_ASSIGN(const UcxLibrary library, find_ucx(options.library));
  return choose_network(options, library.has_module("ib")).status();
}

}  // namespace tutti
