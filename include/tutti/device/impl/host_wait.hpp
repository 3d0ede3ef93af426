// How a host thread waits for a word that another thread or process stores.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>

#include "tutti/device/impl/running_time.hpp"

namespace tutti::device::impl {

// Polls for about a microsecond, then yields, so that many ranks make progress on few cores. After
// a millisecond the peer must be late, so the thread sleeps and leaves the core to others. Nobody
// wakes it, so storing the word costs nothing extra. A sleep lasts a 16th of the time waited so
// far, at most 1 ms, or 2 ms after a second of waiting. Even if a sleep costs 16 us, this takes
// less than 1 % of a core.
class HostWait {
 public:
  // Call it after each poll that fails. True: check now whether something else ends the wait.
  bool pause() { return polls_++ >= kPolls && give_way(); }

  // The time waited, as of the last pause() that returned true.
  std::uint64_t waited_ns() const { return static_cast<std::uint64_t>(waited_); }

 private:
  static constexpr std::uint64_t kPolls = 256, kYieldsPerLook = 64;
  static constexpr std::int64_t kYields = 1'000'000;    // ns, all yields together
  static constexpr std::int64_t kLong = 1'000'000'000;  // ns
  static constexpr std::int64_t kShortestSleep = 50'000, kLongestSleep = 1'000'000;  // ns

  // Not inlined, so that polling is a short loop.
  [[gnu::noinline]] bool give_way() {
    if (polls_ == kPolls + 1) start_ = running_ns();
    if (waited_ >= kYields) {
      const std::int64_t longest = waited_ < kLong ? kLongestSleep : 2 * kLongestSleep;
      std::this_thread::sleep_for(
          std::chrono::nanoseconds(std::clamp(waited_ / 16, kShortestSleep, longest)));
    } else {
      std::this_thread::yield();
      if (polls_ % kYieldsPerLook != 1) return false;
    }
    waited_ = std::max(waited_, running_ns() - start_);
    return true;
  }

  std::uint64_t polls_ = 0;
  std::int64_t start_ = 0, waited_ = 0;
};

}  // namespace tutti::device::impl
