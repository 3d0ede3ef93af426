// What the kernel says of this host.
#include "topology/host.hpp"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <string_view>

#include "base/host_name.hpp"
#include "base/units.hpp"
#include "drivers/host_files.hpp"

namespace tutti {
namespace {

std::string boot_id() {
  std::string text = kernel_text("/proc/sys/kernel/random/boot_id");
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) {
    text.pop_back();
  }
  return text;
}

bool is_numa_node(std::string_view name) {
  constexpr std::string_view kPrefix = "node";
  return name.size() > kPrefix.size() && name.starts_with(kPrefix) &&
         std::all_of(name.begin() + kPrefix.size(), name.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

int numa_nodes() {
  std::error_code error;
  int nodes = 0;
  for (std::filesystem::directory_iterator at("/sys/devices/system/node", error), end;
       !error && at != end; at.increment(error)) {
    if (is_numa_node(at->path().filename().string())) ++nodes;
  }
  return std::max(nodes, 1);
}

std::size_t shared_memory_bytes() {
  struct statvfs about {};
  if (::statvfs("/dev/shm", &about) != 0) return 0;
  return static_cast<std::size_t>(about.f_blocks) * about.f_frsize;
}

}  // namespace

std::size_t memory_in_meminfo(std::string_view text) {
  constexpr std::string_view kLabel = "MemTotal:";
  const std::size_t label = text.find(kLabel);
  if (label == std::string_view::npos) return 0;
  text.remove_prefix(label + kLabel.size());
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  std::size_t kib = 0;
  std::from_chars(text.data(), text.data() + text.size(), kib);
  return kib * KiB;
}

int cores_of_host() { return static_cast<int>(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L)); }

Host discover_host() {
  Host host;
  host.name = host_name();
  host.boot_id = boot_id();
  host.cores = cores_of_host();
  host.numa_nodes = numa_nodes();
  host.memory_bytes = memory_in_meminfo(kernel_text("/proc/meminfo"));
  host.shared_memory_bytes = shared_memory_bytes();
  return host;
}

}  // namespace tutti
