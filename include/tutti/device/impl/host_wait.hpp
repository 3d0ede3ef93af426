// How a host thread waits for a word that another thread or process stores.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>

#include "tutti/device/impl/running_time.hpp"

namespace tutti::device::impl {

// Whether a thread seems to have its core to itself. If so, its first yield in a wait returns at
// once, wait after wait: then it need not yield soon, since a yield costs more than most waits
// take. If another thread wants the core, the yield lasts until that one has run: then waits should
// yield early. A scheduler may sometimes return at once even so, hence several in a row.
class OwnCore {
 public:
  bool seems_own() const { return in_a_row_ >= kEnough; }
  void note_first_yield(std::int64_t ns) { in_a_row_ = ns < kAtOnce ? in_a_row_ + 1 : 0; }

 private:
  static constexpr std::int64_t kAtOnce = 1'000;  // ns; 300 to 500 is usual, 1500 with a switch
  static constexpr std::uint64_t kEnough = 16;
  std::uint64_t in_a_row_ = 0;
};

inline thread_local constinit OwnCore own_core;

// Polls, for 0.1 us or, on a core of its own, for some microseconds. Then it yields, so that many
// ranks make progress on few cores. After a millisecond the peer must be late, so the thread sleeps
// and leaves the core to others. Nobody wakes it, so storing the word costs nothing extra. A sleep
// lasts a 16th of the time waited so far, at most 1 ms, or 2 ms after a second of waiting. Even if
// a sleep costs 16 us, this takes less than 1 % of a core.
class HostWait {
 public:
  // Call it after each poll that fails. True: check now whether something else ends the wait.
  bool pause() { return polls_++ >= kPolls && give_way(); }

  // The time waited, as of the last pause() that returned true.
  std::uint64_t waited_ns() const { return static_cast<std::uint64_t>(waited_); }

 private:
  static constexpr std::uint64_t kPolls = 256, kPollsOfOwnCore = 4096, kYieldsPerLook = 64;
  static constexpr std::int64_t kYields = 1'000'000;    // ns, all yields together
  static constexpr std::int64_t kLong = 1'000'000'000;  // ns
  static constexpr std::int64_t kShortestSleep = 50'000, kLongestSleep = 1'000'000;  // ns

  // Not inlined, so that polling is a short loop.
  [[gnu::noinline]] bool give_way() {
    if (yields_ == 0) {
      if (polls_ <= kPollsOfOwnCore && own_core.seems_own()) return false;
      start_ = running_ns();
    }
    if (waited_ >= kYields) {
      const std::int64_t longest = waited_ < kLong ? kLongestSleep : 2 * kLongestSleep;
      std::this_thread::sleep_for(
          std::chrono::nanoseconds(std::clamp(waited_ / 16, kShortestSleep, longest)));
    } else {
      std::this_thread::yield();
      if (yields_++ % kYieldsPerLook != 0) return false;
      if (yields_ == 1) own_core.note_first_yield(running_ns() - start_);
    }
    waited_ = std::max(waited_, running_ns() - start_);
    return true;
  }

  std::uint64_t polls_ = 0, yields_ = 0;
  std::int64_t start_ = 0, waited_ = 0;
};

}  // namespace tutti::device::impl
