// A moment after which a wait must have ended. Passed down by value; never extended.
#pragma once

#include <algorithm>
#include <chrono>

#include "tutti/device/impl/running_time.hpp"

namespace tutti {

// Longer timeouts are capped at 20 years, of which some together fit in 64 bits of nanoseconds.
inline constexpr std::chrono::milliseconds kLongestTimeout = std::chrono::hours(24 * 365 * 20);
inline std::chrono::milliseconds limited(std::chrono::milliseconds timeout) {
  return std::min(timeout, kLongestTimeout);
}

// Goes on only while this process runs (running_time.hpp), if it is looked at often enough.
struct RunningClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<RunningClock>;
  static constexpr bool is_steady = true;
  static time_point now() { return time_point(duration(device::impl::running_ns())); }
};

// In time that this process runs. So who waits looks at it again and again, and sleeps meanwhile
// for poll_ms() or until next_look().
class Deadline {
 public:
  using Clock = RunningClock;

  explicit Deadline(Clock::duration from_now) : end_(Clock::now() + from_now) {}

  bool passed() const { return Clock::now() >= end_; }
  // Never negative.
  Clock::duration left() const { return std::max(end_ - Clock::now(), Clock::duration::zero()); }

  // Between two looks. Less than half of what counts as a pause of the process.
  static constexpr std::chrono::milliseconds kBetweenLooks{100};
  // What poll(2) and friends take, rounded up, at most `cap`.
  int poll_ms(std::chrono::milliseconds cap = kBetweenLooks) const {
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left());
    return static_cast<int>(std::min({ms, cap, kBetweenLooks}).count());
  }
  // What conditions take that are waited for in a loop.
  std::chrono::steady_clock::time_point next_look(Clock::duration cap = kBetweenLooks) const {
    return std::chrono::steady_clock::now() +
           std::min<Clock::duration>({left(), cap, kBetweenLooks});
  }

  // As Condition::wait_until() does, which knows nothing of pauses: whether `holds()` in the end.
  template <class Condition, class Lock, class Holds>
  bool wait(Condition& condition, Lock& lock, const Holds& holds) const {
    while (!holds()) {
      if (passed()) return false;
      condition.wait_until(lock, next_look());
    }
    return true;
  }

 private:
  Clock::time_point end_;
};

}  // namespace tutti
