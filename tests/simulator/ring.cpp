// A ring of slots in the simulation.
#include <algorithm>

#include "simulator/team.hpp"

namespace tutti {
namespace {

using Kind = simulated::Mutation::Kind;

}  // namespace

Outcome SimulatedTeam::slot_to(Direction direction, std::byte*& at) const {
  const std::uint64_t chunk = sent_[direction];
  at = slot(receiver(direction), direction, chunk);
  if (direction == kReverse) return Outcome::kDone;
  if (simulated::Trace* const trace = environment_.trace) trace->uses_credits = true;
  const std::uint64_t free = RingSlots::kPerBlock + (left_out(Kind::kCreditTooMany, 0) ? 1 : 0);
  if (chunk < free || left_out(Kind::kNoCreditWait, 0)) return Outcome::kDone;
  return wait_for({.flag = &ring(work_.rank).credits,
                   .rank = receiver(direction),
                   .epoch = epoch_ + chunk - free + 1,
                   .acquires = !left_out(Kind::kNoCreditAcquire, 0)});
}

Outcome SimulatedTeam::slot_from(Direction direction, std::byte*& at) const {
  const std::uint64_t chunk = taken_[direction];
  at = slot(work_.rank, direction, chunk);
  if (left_out(Kind::kNoChunkWait, direction)) return Outcome::kDone;
  return wait_for({.flag = &ring(work_.rank).chunks[direction],
                   .rank = sender(direction),
                   .epoch = epoch_ + chunk + 1,
                   .acquires = !left_out(Kind::kNoChunkAcquire, direction)});
}

// As on GPUs: credits tell that loads are over, for which nothing is released. One fence is for all
// that is sent.
Outcome SimulatedTeam::pass(unsigned moves) {
  note_pass(moves);
  const bool tells_early = left_out(Kind::kPassNotReleased, static_cast<int>(moves));
  for (const Direction direction : {kForward, kReverse}) {
    if ((moves & sent(direction)) != 0) ++sent_[direction];
    if ((moves & taken(direction)) != 0) ++taken_[direction];
  }
  if (goes_through_slots(work_) && (moves & taken(kForward)) != 0 &&
      !left_out(Kind::kNoCredit, 0)) {
    memory().send(fiber(), tells_early ? Publish::kEarlierKernels : Publish::kLoads);
    tell(ring(sender(kForward)).credits, epoch_ + taken_[kForward]);
  }
  if ((moves & (sent(kForward) | sent(kReverse))) == 0) return Outcome::kDone;
  if (!tells_early) memory().release(fiber());
  memory().send(fiber(), Publish::kEarlierKernels);
  for (const Direction direction : {kForward, kReverse}) {
    if ((moves & sent(direction)) == 0 || left_out(Kind::kNoChunk, direction)) continue;
    tell(ring(receiver(direction)).chunks[direction], epoch_ + sent_[direction]);
  }
  return Outcome::kDone;
}

void SimulatedTeam::tell(Flag& flag, std::uint64_t epoch) const {
  memory().store_flag(fiber(), &flag, {epoch, check_word(epoch)});
}

void SimulatedTeam::note_pass(unsigned moves) const {
  simulated::Trace* const trace = environment_.trace;
  if (trace == nullptr) return;
  if (std::find(trace->passes.begin(), trace->passes.end(), moves) == trace->passes.end()) {
    trace->passes.push_back(moves);
  }
  for (const Direction direction : {kForward, kReverse}) {
    if ((moves & sent(direction)) != 0) ++trace->chunks[direction];
  }
}

}  // namespace tutti
