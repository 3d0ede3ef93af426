// Packets in the simulation: launches, announcements, and words that come one by one.
#include <algorithm>

#include "simulator/team.hpp"

namespace tutti {
namespace {

using Kind = simulated::Mutation::Kind;
using simulated::Waited;

}  // namespace

void SimulatedTeam::ask_launch() { launch_ = LaunchWord::launch_of(*work_.packets.launches); }

Outcome SimulatedTeam::open_packets() {
  generation_ = left_out(Kind::kOneGeneration, 0) ? 0 : launch_;
  return ended_ ? Outcome::kFailed : Outcome::kDone;
}

void SimulatedTeam::announce() {
  if (ended_) return;
  if (!left_out(Kind::kLaunchNotCounted, 0)) {
    *work_.packets.launches += LaunchWord::share_of(block_, work_.blocks);
  }
  memory().send(fiber(), Publish::kEarlierKernels);
  for (int step = 0; step < work_.ranks; ++step) {
    if (left_out(Kind::kNoAnnouncement, 0, rank_after(step))) continue;
    memory().store_flag(fiber(), &packet_memory(step).flags[block_][work_.rank],
                        {launch_ + 1, check_word(launch_ + 1)});
  }
}

Outcome SimulatedTeam::close_packets() {
  if (left_out(Kind::kNoClosing, 0)) return Outcome::kDone;
  for (int r = 0; r < work_.ranks; ++r) {
    if (wait_for_announcement(r) != Outcome::kDone) return Outcome::kFailed;
  }
  return Outcome::kDone;
}

Outcome SimulatedTeam::wait_for_announcement(int rank) const {
  return wait_for(
      {.flag = &own_packet_memory().flags[block_][rank], .rank = rank, .epoch = launch_ + 1});
}

// What a poll that waits long would look at, too: the announcement of another operation.
Outcome SimulatedTeam::wait_for_packet(int source, const std::uint64_t* packet) const {
  const std::uint64_t epoch = launch_ + 1;
  const auto waited =
      environment_.simulation.wait_for_packet(fiber(), packet, epoch, &work_.control->poison);
  if (waited == Waited::kArrived) return Outcome::kDone;
  Flag seen = memory().read_flag(&own_packet_memory().flags[block_][source]);
  const bool other = seen.epoch == epoch && seen.check != check_word(epoch);
  if (other && !left_out(Kind::kNoSignature, 0)) {
    return fail(FailureReason::kMismatch, source, epoch, seen);
  }
  seen.epoch = std::min(seen.epoch, launch_);  // of what is waited for, not all has come
  const bool called_off = waited == Waited::kCalledOff;
  return fail(called_off ? FailureReason::kAborted : FailureReason::kTimeout, source, epoch, seen);
}

void SimulatedTeam::send_packet(std::uint64_t* to, std::uint64_t packet) const {
  environment_.simulation.interrupt(fiber());
  memory().store_packet(fiber(), to, packet, launch_ + 1);
}

Outcome SimulatedTeam::take_packet(int source, std::uint64_t* from, Place place,
                                   std::uint64_t& packet) const {
  const bool unseen = left_out(Kind::kNoPoll, place.part) ||
                      (place.is_last && left_out(Kind::kWordNotPolled, place.part));
  if (!unseen && wait_for_packet(source, from) != Outcome::kDone) return Outcome::kFailed;
  packet = *from;
  const bool kept = left_out(Kind::kNoClear, place.part) ||
                    (place.is_last && left_out(Kind::kWordNotCleared, place.part));
  if (!kept) memory().store_packet(fiber(), from, 0, launch_ + 1);
  return Outcome::kDone;
}

void SimulatedTeam::note_part(int part) const {
  simulated::Trace* const trace = environment_.trace;
  if (trace != nullptr) trace->parts = std::max(trace->parts, part + 1);
}

}  // namespace tutti
