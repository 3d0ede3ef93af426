// A moment after which a wait must have ended. Passed down by value; never extended.
#pragma once

#include <algorithm>
#include <chrono>

namespace tutti {

// Longer timeouts are capped at 100 years, which in nanoseconds fit in 64 bits.
inline constexpr std::chrono::milliseconds kLongestTimeout = std::chrono::hours(24 * 365 * 100);
inline std::chrono::milliseconds limited(std::chrono::milliseconds timeout) {
  return std::min(timeout, kLongestTimeout);
}

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Deadline(Clock::duration from_now) : end_(Clock::now() + from_now) {}

  bool passed() const { return Clock::now() >= end_; }
  Clock::time_point end() const { return end_; }

  // Never negative; what poll(2) and friends take, rounded up, at most `cap`.
  int remaining_ms(int cap = 1 << 30) const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now()).count();
    return left <= 0 ? 0 : static_cast<int>(left < cap ? left : cap);
  }

 private:
  Clock::time_point end_;
};

}  // namespace tutti
