// The time in which this process ran. Timeouts on the host count this time: if all ranks were
// suspended together (by SIGSTOP, a frozen container, a paused machine), none is late because of
// it, and waits continue.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace tutti::device::impl {

// Every waiting thread reads this clock several times within kLongestStep. If no thread has read it
// for longer, the process did not run; of that step only kLongestStep counts, so that a timeout
// still passes in the end. All threads share one clock, and any of them may detect the step. If
// several do at once, one of them may read up to kLongestStep too much, and reads less the next
// time.
class RunningTime {
 public:
  static constexpr std::int64_t kLongestStep = 250'000'000;  // ns

  // `now`: ns of a clock that continues while the process is suspended.
  std::int64_t at(std::int64_t now) {
    for (;;) {
      // Acquire, before lost_ is loaded: a thread that sees a reading also sees what was lost
      // before.
      const std::int64_t latest = latest_.load(std::memory_order_acquire);
      std::int64_t lost = lost_.load(std::memory_order_relaxed);
      const std::int64_t step = now - lost - latest;
      if (step <= kLongestStep) {
        if (step >= kLongestStep / 16) raise(latest, latest + step);
        return latest + step;
      }
      // If several threads detect the step, the first one adds it; the others see the sum, no step.
      lost_.compare_exchange_strong(lost, lost + step - kLongestStep, std::memory_order_relaxed);
    }
  }

 private:
  // Rare, so that concurrent waiters do not contend for the cache line. Release: publishes what
  // this thread saw of lost_.
  void raise(std::int64_t latest, std::int64_t to) {
    while (latest < to && !latest_.compare_exchange_weak(latest, to, std::memory_order_release,
                                                         std::memory_order_relaxed)) {
    }
  }

  std::atomic<std::int64_t> latest_ = 0;  // the latest reading of this clock
  std::atomic<std::int64_t> lost_ = 0;    // how far it is behind the other clock
};

inline constinit RunningTime process_time;

inline std::int64_t running_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return process_time.at(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

}  // namespace tutti::device::impl
