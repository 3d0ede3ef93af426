// What of the host team's ring is not copying of tiles: who tells whom, and waits.
#include "device/host_shared/host_waits.hpp"

namespace tutti {

Outcome HostTeam::slot_to(Direction direction, std::byte*& at) const {
  constexpr std::uint64_t kSlots = RingSlots::kPerBlock;
  const std::uint64_t chunk = sent_[direction];
  at = slot(receiver(direction), direction, chunk);
  if (direction == kReverse || chunk < kSlots || weakened(&ProtocolMutation::no_credit_wait, 0)) {
    return Outcome::kDone;
  }
  return wait_for_ring(ring(work_.rank).credits, receiver(direction), epoch_ + chunk - kSlots + 1,
                       !weakened(&ProtocolMutation::no_credit_acquire, 0));
}

Outcome HostTeam::slot_from(Direction direction, std::byte*& at) const {
  const std::uint64_t chunk = taken_[direction];
  at = slot(work_.rank, direction, chunk);
  if (weakened(&ProtocolMutation::no_chunk_wait, direction)) return Outcome::kDone;
  Flag& chunks = ring(work_.rank).chunks[direction];
  return wait_for_ring(chunks, sender(direction), epoch_ + chunk + 1,
                       !weakened(&ProtocolMutation::no_chunk_acquire, direction));
}

Outcome HostTeam::pass(unsigned moves) {
  for (const Direction direction : {kForward, kReverse}) {
    if ((moves & sent(direction)) != 0) {
      // Release: who sees the count finds the chunk.
      const bool release = !weakened(&ProtocolMutation::no_chunk_release, direction);
      signal(ring(receiver(direction)).chunks[direction], epoch_ + ++sent_[direction],
             release ? std::memory_order_release : std::memory_order_relaxed);
    }
    if ((moves & taken(direction)) != 0) ++taken_[direction];
  }
  if (goes_through_slots(work_) && (moves & taken(kForward)) != 0) {
    // Release: who sees the count stores into the slot after it was loaded from.
    const bool release = !weakened(&ProtocolMutation::no_credit_release, 0);
    signal(ring(sender(kForward)).credits, epoch_ + taken_[kForward],
           release ? std::memory_order_release : std::memory_order_relaxed);
  }
  return Outcome::kDone;
}

Outcome HostTeam::wait_for_ring(Flag& flag, int rank, std::uint64_t epoch, bool acquire) const {
  const auto order = acquire ? std::memory_order_acquire : std::memory_order_relaxed;
  const auto missing = [rank] { return std::uint64_t{1} << rank; };
  const Outcome outcome = wait_for(flag, rank, epoch, order, missing);
  if (outcome != Outcome::kDone) take_flags_back();
  return outcome;
}

}  // namespace tutti
