// Counts that grow by steps and may wrap.
#pragma once

#include <cstdint>

namespace tutti {

// Whether a count has reached another one; as waits of streams for values compare.
constexpr bool has_reached(std::uint64_t seen, std::uint64_t value) {
  return static_cast<std::int64_t>(seen - value) >= 0;
}

}  // namespace tutti
