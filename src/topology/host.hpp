// The part of discover_machine() that needs no driver.
#pragma once

#include <string_view>

#include "topology/topology.hpp"

namespace tutti {

Host discover_host();

// Those that are switched on, not those this process is pinned to: ranks that are pinned apart see
// the same machine.
int cores_of_host();

// MemTotal of /proc/meminfo's text, in bytes; 0 if it has none.
std::size_t memory_in_meminfo(std::string_view text);

}  // namespace tutti
