// A port for the ranks of one job.
#pragma once

#include <cstdint>

#include "base/fd.hpp"
#include "tutti/status.hpp"

namespace tutti::cli {

struct Port {
  std::uint16_t number = 0;
  Fd held;  // while it is open the system gives the port to nobody else
};

// A free one. Ranks can listen at it by SO_REUSEADDR, which every server sets.
Result<Port> reserve_port();

}  // namespace tutti::cli
