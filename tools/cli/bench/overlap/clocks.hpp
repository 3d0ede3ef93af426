// How fast multiprocessors run, by what their counters say before and after.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tutti::cli {

// Of one multiprocessor; zeros: nobody has looked there.
struct ClockReading {
  std::uint64_t cycles, nanoseconds;
};

inline constexpr std::size_t kMostMultiprocessors = 256;

// The mean over those that were looked at both times; 0 where there are none. Of the same ones in
// the same order.
double mean_megahertz(std::span<const ClockReading> before, std::span<const ClockReading> after);

}  // namespace tutti::cli
