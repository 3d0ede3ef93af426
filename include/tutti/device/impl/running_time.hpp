// Time in which this process ran. Deadlines of the host are measured in it: where all ranks were
// suspended together (by SIGSTOP, a frozen container, a paused machine), none is late because of
// that, and a wait goes on where it was.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace tutti::device::impl {

// Whoever waits looks at this clock several times within kLongestStep. Where nobody has looked for
// longer, the process did not run, and of that step kLongestStep counts alone: so a deadline comes
// in any case. One clock for all threads; any of them may be the one that notices. Where several do
// at once, one may have been told up to kLongestStep too much, and is told less the next time.
class RunningTime {
 public:
  static constexpr std::int64_t kLongestStep = 250'000'000;  // ns

  // `now`: ns of a clock that goes on while the process does not.
  std::int64_t at(std::int64_t now) {
    for (;;) {
      // Acquire, before lost_ is loaded: who sees a look also sees what was lost before it.
      const std::int64_t latest = latest_.load(std::memory_order_acquire);
      std::int64_t lost = lost_.load(std::memory_order_relaxed);
      const std::int64_t step = now - lost - latest;
      if (step <= kLongestStep) {
        if (step >= kLongestStep / 16) raise(latest, latest + step);
        return latest + step;
      }
      // Of several threads that notice, one is the first; the others see its sum, and no step.
      lost_.compare_exchange_strong(lost, lost + step - kLongestStep, std::memory_order_relaxed);
    }
  }

 private:
  // Seldom, so that threads that wait side by side do not take the cache line from each other.
  // Release: with what this thread saw of lost_.
  void raise(std::int64_t latest, std::int64_t to) {
    while (latest < to && !latest_.compare_exchange_weak(latest, to, std::memory_order_release,
                                                         std::memory_order_relaxed)) {
    }
  }

  std::atomic<std::int64_t> latest_ = 0;  // look, in the time that this clock tells
  std::atomic<std::int64_t> lost_ = 0;    // what it is behind the other one
};

inline constinit RunningTime process_time;

inline std::int64_t running_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return process_time.at(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

}  // namespace tutti::device::impl
