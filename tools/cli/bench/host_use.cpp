#include "bench/host_use.hpp"

#include <array>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

namespace tutti::cli {
namespace {

constexpr std::uint64_t kFewestTicks = 20;  // a tick is 10 ms of a core

std::string text_of(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

HostUse& HostUse::operator+=(const HostUse& other) {
  sent_bytes += other.sent_bytes;
  busy_ticks += other.busy_ticks;
  all_ticks += other.all_ticks;
  return *this;
}

HostUse operator-(const HostUse& later, const HostUse& earlier) {
  return {.sent_bytes = later.sent_bytes - earlier.sent_bytes,
          .busy_ticks = later.busy_ticks - earlier.busy_ticks,
          .all_ticks = later.all_ticks - earlier.all_ticks};
}

double HostUse::cpu_share() const {
  if (all_ticks < kFewestTicks) return 0;
  return static_cast<double>(busy_ticks) / static_cast<double>(all_ticks);
}

HostUse host_use_from(std::string_view net_dev, std::string_view stat) {
  HostUse use;
  std::istringstream interfaces{std::string(net_dev)};
  for (std::string line; std::getline(interfaces, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    std::string name = line.substr(0, colon);
    name.erase(0, name.find_first_not_of(' '));
    if (name == "lo") continue;
    std::istringstream numbers(line.substr(colon + 1));
    std::array<std::uint64_t, 9> columns{};  // eight of what was received; then bytes sent
    for (std::uint64_t& column : columns) numbers >> column;
    use.sent_bytes += columns.back();
  }
  // user, nice, system, idle, iowait, irq, softirq, steal. The hypervisor's share is lost, too.
  std::istringstream numbers{std::string(stat)};
  std::string cpu;
  std::array<std::uint64_t, 8> ticks{};
  numbers >> cpu;
  for (std::uint64_t& state : ticks) numbers >> state;
  for (const std::uint64_t state : ticks) use.all_ticks += state;
  use.busy_ticks = use.all_ticks - ticks[3] - ticks[4];
  return use;
}

HostUse host_use_now() { return host_use_from(text_of("/proc/net/dev"), text_of("/proc/stat")); }

}  // namespace tutti::cli
