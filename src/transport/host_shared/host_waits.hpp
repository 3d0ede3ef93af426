// How a wait of the host team goes on and ends; for its sources alone.
#pragma once

#include <algorithm>
#include <chrono>
#include <sched.h>

#include "transport/host_shared/host_team.hpp"

namespace tutti {

inline std::atomic_ref<std::uint64_t> word(std::uint64_t& value) { return std::atomic_ref(value); }

// Relaxed: a check that is older than the epoch does not repeat it.
inline Flag flag_now(Flag& flag) {
  const std::uint64_t epoch = word(flag.epoch).load(std::memory_order_relaxed);
  return {epoch, word(flag.check).load(std::memory_order_relaxed)};
}

template <class Come, class Look>
Outcome HostTeam::wait_until(int rank, std::uint64_t expected, Come&& come, Look&& look) const {
  using Clock = std::chrono::steady_clock;
  constexpr std::uint64_t kSpins = 256;         // polls before the first yield: about a microsecond
  constexpr std::uint64_t kPollsPerClock = 64;  // yields between two looks at the clock
  Clock::time_point start{};
  bool left = false;
  for (std::uint64_t polls = 0; !come(); ++polls) {
    if (polls < kSpins) continue;
    if (polls == kSpins) start = Clock::now();
    sched_yield();
    if (polls % kPollsPerClock != 0) continue;
    Flag seen = look();
    const auto waited = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
    if (seen.epoch == expected && is_other_operation(seen, expected)) {
      return fail(FailureReason::kMismatch, rank, expected, seen, 0);
    }
    seen.epoch = std::min(seen.epoch, expected - 1);  // of what is waited for, not all has come
    if (weakening_ != nullptr && weakening_->after_poll != nullptr) {
      weakening_->after_poll(work_.rank);
    }
    if (poisoned()) return fail(FailureReason::kAborted, rank, expected, seen, waited);
    if (left) return fail(FailureReason::kLeft, rank, expected, seen, waited);  // polled again
    left = has_left(rank);
    const std::uint64_t limit =
        work_.timeout_ns != 0
            ? work_.timeout_ns
            : std::atomic_ref(work_.control->timeout_ns).load(std::memory_order_relaxed);
    if (waited > limit) return fail(FailureReason::kTimeout, rank, expected, seen, waited);
  }
  return Outcome::kDone;
}

template <class Missing>
Outcome HostTeam::wait_for(Flag& flag, int rank, std::uint64_t epoch, std::memory_order order,
                           Missing&& missing) const {
  bool looked = false;
  const auto look = [&] {
    looked = true;
    tell(missing());
    return flag_now(flag);
  };
  const auto come = [&] { return word(flag.epoch).load(order) >= epoch; };
  if (wait_until(rank, epoch, come, look) != Outcome::kDone) return Outcome::kFailed;
  if (looked) tell(0);
  // A peer that is one step ahead may have overwritten the check: then it was compared there.
  const Flag seen = flag_now(flag);
  if (is_other_operation(seen, epoch)) return fail(FailureReason::kMismatch, rank, epoch, seen, 0);
  return Outcome::kDone;
}

}  // namespace tutti
