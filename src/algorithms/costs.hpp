// Costs that algorithms of several collectives have in common, as multiples of the message.
#pragma once

namespace tutti {

// The same for any number of ranks.
template <int kTimes>
double times(int) {
  return kTimes;
}

// All of it to every other rank.
inline double one_shot_wire(int ranks) { return ranks - 1; }
// A share to every other rank, and its sum again.
inline double two_shot_wire(int ranks) { return 2.0 * (ranks - 1) / ranks; }
// All of it once over the root's links.
inline double root_wire(int ranks) { return ranks > 1 ? 1 : 0; }

}  // namespace tutti
