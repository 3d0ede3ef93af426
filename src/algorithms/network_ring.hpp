// Rings over the network, of all ranks or of some: steps of both phases, by ring_schedule.hpp.
#pragma once

#include <utility>
#include <vector>

#include "algorithms/network_steps.hpp"

namespace tutti {

// A ring, as one of its members sees it. By the number of a share: its range, what this rank adds
// to it, and where sums of it lie.
struct NetworkRing {
  RingMember member;
  int next = 0, before = 0;  // ranks
  std::vector<Range> shares = {};
  std::vector<NetworkPlace> own = {}, into = {};
  std::vector<int> ready = {};  // steps that this rank's own part waits for

  int whole() const { return on_ring(member.whole, member.members); }
};

// Of all ranks, of which rank r makes share `whole` whole; shares are still to be told.
inline NetworkRing ring_of_all(const NetworkShape& shape, int whole, bool both_ways) {
  return {.member = {shape.ranks, whole, both_ways},
          .next = on_ring(shape.rank + 1, shape.ranks),
          .before = on_ring(shape.rank - 1, shape.ranks)};
}

// The steps of a ring. Where sums lie in the output, nobody needs their place before; and in place
// a member's own part of a share is used up when it is added.
class NetworkRingSteps {
 public:
  NetworkRingSteps(NetworkSteps& steps, const NetworkRing& ring)
      : steps_(steps),
        ring_(ring),
        sent_(ring.shares.size(), kNoStep),
        complete_(ring.shares.size(), kNoStep) {}

  // Own parts are added up, until the share that this member makes whole is.
  void add() {
    const RingSteps steps = ring_.member.steps;
    const int whole = ring_.whole();
    if (ring_.member.members == 1) {
      complete_[at(whole)] =
          steps_.sum(share(whole), {ring_.own[at(whole)]}, ring_.into[at(whole)], ring_.ready);
      return;
    }
    // The way back is the shorter one: what comes there is added first, and is not whole yet.
    const int partial = steps.reverse > 0 ? add_one_way(kBack, kNoStep) : kNoStep;
    complete_[at(whole)] = add_one_way(kForth, partial);
  }

  // Whole shares go around: what was added up here, or else this rank's own part.
  void spread() {
    for (const Way way : {kForth, kBack}) {
      for (int step = 0; step < steps_of(way); ++step) {
        const int sent = spread_share(way, step), came = spread_share(way, step + 1);
        const int complete = complete_[at(sent)];
        const NetworkPlace from = complete == kNoStep ? ring_.own[at(sent)] : into(sent);
        steps_.send(to(way), share(sent), from, {complete});
        complete_[at(came)] =
            steps_.receive(from_rank(way), share(came), into(came), {sent_[at(came)]});
      }
    }
  }

  // Which step completes each share here; kNoStep of those that none does.
  const std::vector<int>& complete() const { return complete_; }
  // Which step sends each share's sum on; kNoStep of the one that stays here.
  const std::vector<int>& sent() const { return sent_; }

 private:
  enum Way : bool { kForth, kBack };

  static std::size_t at(int share) { return static_cast<std::size_t>(share); }
  Range share(int index) const { return ring_.shares[at(index)]; }
  NetworkPlace into(int index) const { return ring_.into[at(index)]; }
  int to(Way way) const { return way == kForth ? ring_.next : ring_.before; }
  int from_rank(Way way) const { return way == kForth ? ring_.before : ring_.next; }
  int steps_of(Way way) const {
    return way == kForth ? ring_.member.steps.forward : ring_.member.steps.reverse;
  }
  int add_share(Way way, int step) const {
    return way == kForth ? ring_.member.add_forward(step) : ring_.member.add_reverse(step);
  }
  int spread_share(Way way, int step) const {
    return way == kForth ? ring_.member.send_forward(step) : ring_.member.send_reverse(step);
  }

  // What this rank sends and receives in one direction. The last sum that comes is of the share
  // that is made whole here; `partial`: what the other direction has brought of it. Its step.
  int add_one_way(Way way, int partial) {
    int came = kNoStep;
    for (int step = 0; step < steps_of(way); ++step) {
      const int sent = add_share(way, step), next = add_share(way, step + 1);
      const NetworkPlace from = step == 0 ? ring_.own[at(sent)] : into(sent);
      std::vector<int> after = step == 0 ? ring_.ready : std::vector{came};
      sent_[at(sent)] = steps_.send(to(way), share(sent), from, std::move(after));
      // Where another sum had the place before, it has to be gone.
      const int last = step > 1 ? add_share(way, step - 1) : next;
      const int reused = last != next && into(last) == into(next) ? sent_[at(last)] : kNoStep;
      came = receive_sum(way, next, partial, reused);
    }
    return came;
  }

  int receive_sum(Way way, int index, int partial, int reused) {
    const bool meets = partial != kNoStep && index == ring_.whole();
    std::vector<int> after = meets ? std::vector{partial} : ring_.ready;
    after.push_back(reused);
    const bool whole = index == ring_.whole() && way == kForth;
    return steps_.add({.kind = NetworkStep::Kind::kReceive,
                       .peer = from_rank(way),
                       .first = share(index).first,
                       .count = share(index).count,
                       .places = {meets ? into(index) : ring_.own[at(index)]},
                       .into = into(index),
                       .whole = whole,
                       .after = std::move(after)});
  }

  NetworkSteps& steps_;
  const NetworkRing& ring_;
  std::vector<int> sent_;      // by share: the step that sends its sum on
  std::vector<int> complete_;  // by share
};

}  // namespace tutti
