// Who gives no sign of life. A rank that answers may itself wait for another one, so it is not to
// blame; and a rank that nobody has asked owes no answer.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

namespace tutti {

class LifeSigns {
 public:
  using Clock = std::chrono::steady_clock;

  explicit LifeSigns(int ranks) : peers_(static_cast<std::size_t>(ranks)) {}

  void heard(int peer, Clock::time_point now) { at(peer) = {now, std::nullopt, {}}; }
  // Whether the peer is to be asked: nothing came of it, and nothing was asked, for `interval`.
  bool is_due(int peer, Clock::time_point now, Clock::duration interval) const {
    const Peer& one = at(peer);
    return now - (one.asked ? one.last_asked : one.heard) >= interval;
  }
  void asked(int peer, Clock::time_point now) {
    Peer& one = at(peer);
    if (!one.asked) one.asked = now;
    one.last_asked = now;
  }
  // Since the first question that was not answered.
  Clock::duration silence(int peer, Clock::time_point now) const {
    return at(peer).asked ? now - *at(peer).asked : Clock::duration::zero();
  }

 private:
  struct Peer {
    Clock::time_point heard = {};
    std::optional<Clock::time_point> asked = {};
    Clock::time_point last_asked = {};
  };
  Peer& at(int peer) { return peers_[static_cast<std::size_t>(peer)]; }
  const Peer& at(int peer) const { return peers_[static_cast<std::size_t>(peer)]; }

  std::vector<Peer> peers_;
};

}  // namespace tutti
