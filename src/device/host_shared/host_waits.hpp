// How a wait of the host team goes on and ends; for its sources alone.
#pragma once

#include <algorithm>

#include "device/host_shared/host_team.hpp"
#include "tutti/device/impl/host_wait.hpp"

namespace tutti {

inline std::atomic_ref<std::uint64_t> word(std::uint64_t& value) { return std::atomic_ref(value); }

// Relaxed: a check that is older than the epoch does not repeat it.
inline Flag flag_now(Flag& flag) {
  const std::uint64_t epoch = word(flag.epoch).load(std::memory_order_relaxed);
  return {epoch, word(flag.check).load(std::memory_order_relaxed)};
}

template <class Come, class Look>
Outcome HostTeam::wait_until(int rank, std::uint64_t expected, Come&& come, Look&& look) const {
  device::impl::HostWait wait;
  for (bool left = false; !come();) {
    if (!wait.pause()) continue;
    Flag seen = look();
    const std::uint64_t waited = wait.waited_ns();
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
