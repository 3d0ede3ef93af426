// Who sends which share at which step where shares go around a ring: for kernels and host threads
// (ring.hpp) and for programs of the network (network_ring.hpp).
//
// Ranks are members of the ring, shares are counted modulo their number n. A share is made whole by
// one member, its owner, which is found by `whole`, the share that a member makes whole.
//
//   adding     sums of a share go towards its owner, and every member on the way adds its own. One
//              way they come from the n - 1 members before it. Both ways they come from
//              ceil((n-1)/2) members before it and from floor((n-1)/2) after it, and meet at the
//              owner
//   spreading  whole shares go around from their owners: n - 1 steps forwards, or ceil((n-1)/2)
//              forwards and floor((n-1)/2) back
//
// A member sends at each step what it received, or added to, at the step before.
#pragma once

#include <cstddef>

namespace tutti {

// Steps of one phase in each direction.
struct RingSteps {
  int forward = 0, reverse = 0;
};
constexpr int reverse_ring_steps(int steps) { return steps / 2; }
constexpr RingSteps ring_steps(int members, bool both_ways) {
  const int steps = members - 1;
  const int reverse = both_ways ? reverse_ring_steps(steps) : 0;
  return {steps - reverse, reverse};
}

// Adding: the share that is sent at a step. `skipped`: how many members this direction does not
// pass, the owner included. One way that is the owner alone.
constexpr int added_forward(int whole, int step, int skipped) { return whole - skipped - step; }
constexpr int added_reverse(int whole, int step, int skipped) { return whole + skipped + step; }

// Spreading: the share that is sent at a step.
constexpr int spread_forward(int whole, int step) { return whole - step; }
constexpr int spread_reverse(int whole, int step) { return whole + step; }

// The number of a share or a member, which formulas give from -2 members on.
constexpr int on_ring(int index, int members) { return (index + 2 * members) % members; }

// One member of a ring, with numbers taken modulo the members.
struct RingMember {
  int members = 1;
  int whole = 0;
  RingSteps steps = {};

  constexpr RingMember(int count, int share, bool both_ways)
      : members(count), whole(share), steps(ring_steps(count, both_ways)) {}

  // What is sent at step `step`; at step + 1 of a phase: what is received at `step`.
  constexpr int add_forward(int step) const {
    return on_ring(added_forward(whole, step, members - steps.forward), members);
  }
  constexpr int add_reverse(int step) const {
    return on_ring(added_reverse(whole, step, members - steps.reverse), members);
  }
  constexpr int send_forward(int step) const {
    return on_ring(spread_forward(whole, step), members);
  }
  constexpr int send_reverse(int step) const {
    return on_ring(spread_reverse(whole, step), members);
  }
};

}  // namespace tutti
