#include "transport/host_shared/host_team.hpp"

#include <chrono>
#include <sched.h>

namespace tutti {
namespace {

using Clock = std::chrono::steady_clock;

std::uint64_t nanoseconds_since(Clock::time_point start) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
}

std::atomic_ref<std::uint64_t> word(std::uint64_t& value) { return std::atomic_ref(value); }

constexpr int kSpins = 256;         // polls before the first yield: about a microsecond
constexpr int kPollsPerClock = 64;  // yields between two looks at the clock

}  // namespace

void HostTeam::arrive(Publish) {
  const int index = barriers_++;
  if (weakening_ != nullptr && weakening_->before_barrier != nullptr) {
    weakening_->before_barrier(work_.rank, index);
  }
  if (weakened(&Weakening::skip_barrier, index)) return;
  ++epoch_;
  // Release: a peer that sees the flag sees what this block wrote before.
  const bool release = !weakened(&Weakening::no_release, index);
  for (int r = 0; r < work_.ranks; ++r) {
    signal(r, release ? std::memory_order_release : std::memory_order_relaxed);
  }
}

Outcome HostTeam::wait() {
  const int index = barriers_ - 1;
  if (weakened(&Weakening::skip_barrier, index)) return Outcome::kDone;
  // Acquire: what a peer's block wrote before its flag is read after this.
  const bool acquire = !weakened(&Weakening::no_acquire, index);
  for (int r = 0; r < work_.ranks; ++r) {
    const auto order = acquire ? std::memory_order_acquire : std::memory_order_relaxed;
    if (wait_for(r, order) == Outcome::kDone) continue;
    take_flags_back();
    return Outcome::kFailed;
  }
  return Outcome::kDone;
}

// Nobody who comes from now on may go on. But for a mismatch, which they find by these flags.
void HostTeam::take_flags_back() const {
  const auto poison = std::atomic_ref(work_.control->poison).load(std::memory_order_relaxed);
  if (poison == static_cast<std::uint32_t>(FailureReason::kMismatch)) return;
  for (int r = 0; r < work_.ranks; ++r) {
    Flag& flag = channel(r).flags[block_][work_.rank];
    word(flag.epoch).store(0, std::memory_order_relaxed);
    word(flag.check).store(0, std::memory_order_relaxed);
  }
}

void HostTeam::signal(int rank, std::memory_order order) const {
  Flag& flag = channel(rank).flags[block_][work_.rank];
  word(flag.check).store(check_word(epoch_), std::memory_order_relaxed);
  word(flag.epoch).store(epoch_, order);
}

Outcome HostTeam::wait_for(int rank, std::memory_order order) const {
  Flag& flag = channel(work_.rank).flags[block_][rank];
  Clock::time_point start{};
  Flag seen{};
  std::uint64_t polls = 0;
  for (;; ++polls) {
    seen.epoch = word(flag.epoch).load(order);
    if (seen.epoch >= epoch_) break;
    if (polls < kSpins) continue;
    if (polls == kSpins) start = Clock::now();
    sched_yield();
    if (polls % kPollsPerClock != 0) continue;
    tell(missing_ranks());
    if (poisoned()) return fail(FailureReason::kAborted, rank, seen, nanoseconds_since(start));
    const std::uint64_t limit =
        work_.timeout_ns != 0
            ? work_.timeout_ns
            : std::atomic_ref(work_.control->timeout_ns).load(std::memory_order_relaxed);
    if (const auto waited = nanoseconds_since(start); waited > limit) {
      return fail(FailureReason::kTimeout, rank, seen, waited);
    }
  }
  if (polls >= kSpins) tell(0);
  // A peer that is one barrier ahead may have overwritten the check: then it was compared there.
  seen.check = word(flag.check).load(std::memory_order_relaxed);
  const std::uint64_t expected = check_word(epoch_);
  if (static_cast<std::uint32_t>(seen.check) == static_cast<std::uint32_t>(epoch_) &&
      seen.check != expected) {
    return fail(FailureReason::kMismatch, rank, seen, 0);
  }
  return Outcome::kDone;
}

std::uint64_t HostTeam::missing_ranks() const {
  std::uint64_t missing = 0;
  for (int r = 0; r < work_.ranks; ++r) {
    Flag& flag = channel(work_.rank).flags[block_][r];
    if (word(flag.epoch).load(std::memory_order_relaxed) < epoch_) missing |= std::uint64_t{1} << r;
  }
  return missing;
}

// Relaxed: it orders nothing, and whoever reads it looks again.
void HostTeam::tell(std::uint64_t missing) const {
  if (waits_for_ != nullptr) word(*waits_for_).store(missing, std::memory_order_relaxed);
}

Outcome HostTeam::finish() {
  if (work_.epochs[block_] + static_cast<std::uint64_t>(barriers_) != epoch_ &&
      weakening_ == nullptr) {
    return fail(FailureReason::kOverlap, work_.rank, Flag{work_.epochs[block_], 0}, 0);
  }
  work_.epochs[block_] = epoch_;
  return Outcome::kDone;
}

bool HostTeam::poisoned() const {
  if (std::atomic_ref(work_.control->poison).load(std::memory_order_relaxed) != 0) return true;
  auto& abort = const_cast<std::uint32_t&>(*work_.abort);
  return std::atomic_ref(abort).load(std::memory_order_relaxed) != 0;
}

Outcome HostTeam::fail(FailureReason reason, int missing, const Flag& seen,
                       std::uint64_t waited_ns) const {
  std::uint32_t healthy = 0;
  std::atomic_ref(work_.control->poison)
      .compare_exchange_strong(healthy, static_cast<std::uint32_t>(reason),
                               std::memory_order_relaxed);
  if (std::atomic_ref(work_.control->claimed).exchange(1) != 0) return Outcome::kFailed;
  describe(reason, missing, epoch_, seen);
  FailureRecord& record = *work_.failure;
  record.waited_ns = waited_ns;
  // Release: whoever sees the state sees the record.
  std::atomic_ref(record.state).store(1, std::memory_order_release);
  return Outcome::kFailed;
}

}  // namespace tutti
