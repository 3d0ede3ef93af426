#include "device/host_shared/host_team.hpp"

#include <algorithm>

#include "device/host_shared/host_waits.hpp"

namespace tutti {

void HostTeam::arrive(Publish) {
  const int index = barriers_++;
  if (weakening_ != nullptr && weakening_->before_barrier != nullptr) {
    weakening_->before_barrier(work_.rank, index);
  }
  if (weakened(&ProtocolMutation::skip_barrier, index)) return;
  ++epoch_;
  // Release: a peer that sees the flag sees what this block wrote before.
  const bool release = !weakened(&ProtocolMutation::no_release, index);
  for (int r = 0; r < work_.ranks; ++r) {
    if (r == work_.rank) continue;  // it would take the cache line from a peer that stores there
    signal(channel(r).flags[block_][work_.rank], epoch_,
           release ? std::memory_order_release : std::memory_order_relaxed);
  }
}

Outcome HostTeam::wait() {
  const int index = barriers_ - 1;
  if (weakened(&ProtocolMutation::skip_barrier, index)) return Outcome::kDone;
  // Acquire: what a peer's block wrote before its flag is read after this.
  const bool acquire = !weakened(&ProtocolMutation::no_acquire, index);
  Flag* const flags = channel(work_.rank).flags[block_];
  for (int r = 0; r < work_.ranks; ++r) {
    if (r == work_.rank) continue;
    const auto order = acquire ? std::memory_order_acquire : std::memory_order_relaxed;
    if (wait_for(flags, r, epoch_, order) == Outcome::kDone) continue;
    take_flags_back();
    return Outcome::kFailed;
  }
  return Outcome::kDone;
}

// Nobody who comes from now on may go on. But for a mismatch, which they find by these flags.
void HostTeam::take_flags_back() const {
  const auto poison = std::atomic_ref(work_.control->poison).load(std::memory_order_relaxed);
  if (Control::reason_of(poison) == FailureReason::kMismatch) return;
  const auto take_back = [](Flag& flag) {
    word(flag.epoch).store(0, std::memory_order_relaxed);
    word(flag.check).store(0, std::memory_order_relaxed);
  };
  for (int r = 0; r < work_.ranks; ++r) take_back(channel(r).flags[block_][work_.rank]);
  if (work_.ring.directions > 0) for_each_ring_flag(take_back);
}

void HostTeam::signal(Flag& flag, std::uint64_t epoch, std::memory_order order) const {
  word(flag.check).store(check_word(epoch), std::memory_order_relaxed);
  store_epoch(flag, epoch, order == std::memory_order_release);
}

// With orders that are constants: one known only at run time is compiled as the strongest one,
// which waits until all earlier stores have reached the cache.
void HostTeam::store_epoch(Flag& flag, std::uint64_t epoch, bool release) {
  if (release) {
    word(flag.epoch).store(epoch, std::memory_order_release);
  } else {
    word(flag.epoch).store(epoch, std::memory_order_relaxed);
  }
}

Outcome HostTeam::wait_for(Flag* flags, int rank, std::uint64_t epoch,
                           std::memory_order order) const {
  return wait_for(flags[rank], rank, epoch, order, [&] { return missing_ranks(flags, epoch); });
}

bool HostTeam::is_other_operation(const Flag& seen, std::uint64_t epoch) const {
  return is_whole({epoch, seen.check}) && seen.check != check_word(epoch);
}

std::uint64_t HostTeam::missing_ranks(Flag* flags, std::uint64_t epoch) const {
  std::uint64_t missing = 0;
  for (int r = 0; r < work_.ranks; ++r) {
    if (r == work_.rank) continue;  // does not signal itself
    if (word(flags[r].epoch).load(std::memory_order_relaxed) < epoch) {
      missing |= std::uint64_t{1} << r;
    }
  }
  return missing;
}

// Relaxed: it orders nothing, and whoever reads it looks again.
void HostTeam::tell(std::uint64_t missing) const {
  if (waits_for_ != nullptr) word(*waits_for_).store(missing, std::memory_order_relaxed);
}

Outcome HostTeam::finish() {
  if (work_.epochs[block_] != first_epoch_) {
    return fail(FailureReason::kOverlap, work_.rank, epoch_, Flag{work_.epochs[block_], 0}, 0);
  }
  work_.epochs[block_] = epoch_ + std::max(sent_[kForward], taken_[kForward]);
  return Outcome::kDone;
}

std::uint32_t HostTeam::notices(std::memory_order order) const {
  return std::atomic_ref(const_cast<std::uint32_t&>(*work_.notices)).load(order);
}

bool HostTeam::poisoned() const {
  if (std::atomic_ref(work_.control->poison).load(std::memory_order_relaxed) != 0) return true;
  return (notices(std::memory_order_relaxed) & Notice::kAbort) != 0;
}

// Acquire: a poll after this finds all that the rank sent.
bool HostTeam::has_left(int rank) const {
  return (notices(std::memory_order_acquire) & Notice::left(rank)) != 0;
}

Outcome HostTeam::fail(FailureReason reason, int missing, std::uint64_t expected, const Flag& seen,
                       std::uint64_t waited_ns) const {
  std::uint32_t healthy = 0;
  std::atomic_ref(work_.control->poison)
      .compare_exchange_strong(healthy, static_cast<std::uint32_t>(reason),
                               std::memory_order_relaxed);
  if (std::atomic_ref(work_.control->claimed).exchange(1) != 0) return Outcome::kFailed;
  describe(reason, missing, expected, seen);
  FailureRecord& record = *work_.failure;
  record.waited_ns = waited_ns;
  // Release: whoever sees the state sees the record.
  std::atomic_ref(record.state).store(1, std::memory_order_release);
  return Outcome::kFailed;
}

}  // namespace tutti
