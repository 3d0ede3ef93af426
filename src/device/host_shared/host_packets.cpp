// What of the host team's packets is not copying of words: launches, and waits.
#include "device/host_shared/host_waits.hpp"

namespace tutti {

void HostTeam::ask_launch() { launch_ = LaunchWord::launch_of(*work_.packets.launches); }

Outcome HostTeam::open_packets() {
  open_ = !poisoned();
  return open_ ? Outcome::kDone : Outcome::kFailed;
}

void HostTeam::announce() {
  if (!open_) return;
  *work_.packets.launches += LaunchWord::share_of(block_, work_.blocks);
  // Release: a peer that sees the announcement finds its slots here empty.
  for (int step = 0; step + 1 < work_.ranks; ++step) {  // the last one is this rank itself
    Flag& flag = packet_memory(step).flags[block_][work_.rank];
    signal(flag, launch_ + 1, std::memory_order_release);
  }
}

Outcome HostTeam::close_packets() const {
  Flag* const flags = own_packet_memory().flags[block_];
  for (int r = 0; r < work_.ranks; ++r) {
    if (r == work_.rank) continue;
    // Acquire: what the next launch but one fills was emptied before this.
    const Outcome told = wait_for(flags, r, launch_ + 1, std::memory_order_acquire);
    if (told != Outcome::kDone) return Outcome::kFailed;
  }
  if (!shows_overlap(*work_.packets.launches, launch_)) return Outcome::kDone;
  return fail(FailureReason::kOverlap, work_.rank, launch_ + 1, Flag{launch_, 0}, 0);
}

Outcome HostTeam::wait_for_packet(int source, std::uint64_t& packet) const {
  Flag* const flags = own_packet_memory().flags[block_];
  const auto come = [&] { return load_packet(packet) != 0; };
  bool looked = false;
  const auto look = [&] {
    looked = true;
    tell(missing_ranks(flags, launch_ + 1) | std::uint64_t{1} << source);
    return flag_now(flags[source]);
  };
  if (wait_until(source, launch_ + 1, come, look) != Outcome::kDone) return Outcome::kFailed;
  if (looked) tell(0);
  return Outcome::kDone;
}

}  // namespace tutti
