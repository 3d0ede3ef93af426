// What this host did so far: bytes that its interfaces sent, and the time of its cores.
#pragma once

#include <cstdint>
#include <string_view>

namespace tutti::cli {

struct HostUse {
  std::uint64_t sent_bytes = 0;                 // by all interfaces but loopback
  std::uint64_t busy_ticks = 0, all_ticks = 0;  // of all cores together
  HostUse& operator+=(const HostUse& other);
  friend HostUse operator-(const HostUse& later, const HostUse& earlier);
  friend bool operator==(const HostUse&, const HostUse&) = default;

  // Part of the time that cores were busy; 0 if there are too few ticks to say.
  double cpu_share() const;
};

// Reads files of /proc. What cannot be read counts nothing.
HostUse host_use_now();
// Of the texts of /proc/net/dev and /proc/stat.
HostUse host_use_from(std::string_view net_dev, std::string_view stat);

}  // namespace tutti::cli
