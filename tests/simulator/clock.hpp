// Vector clocks: how far a fiber knows every other to have come. Time is counted per fiber.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "device/team.hpp"

namespace tutti::simulated {

inline constexpr int kMaxFibers = 32;

using Time = std::uint32_t;

struct Clock {
  std::array<Time, kMaxFibers> at{};

  void join(const Clock& other) {
    for (std::size_t f = 0; f < at.size(); ++f) at[f] = std::max(at[f], other.at[f]);
  }
};

// Loads and stores are known apart: an arrival may say that loads are over without making any store
// visible.
struct Knowledge {
  Clock loads;   // loads up to here are over: what they read may be overwritten
  Clock stores;  // stores up to here are visible: what they wrote may be read

  void join(const Knowledge& other) {
    loads.join(other.loads);
    stores.join(other.stores);
  }
};

}  // namespace tutti::simulated
