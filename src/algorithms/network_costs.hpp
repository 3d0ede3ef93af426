// What algorithms of the network have in common: limits, costs, and which types they take.
#pragma once

#include "algorithms/catalogue.hpp"
#include "algorithms/costs.hpp"
#include "algorithms/takes.hpp"

namespace tutti {

inline constexpr int kMostNetworkRanks = 1 << 20;

// What a message to each other rank costs besides, in hops: sending it takes the processor about a
// tenth of a hop.
inline double messages_to_all(int ranks) { return 0.1 * (ranks - 1); }

// Bytes cost more by so much where they are not a ring's. Many senders that meet at one port slow
// each other: 5 % at 1 Gbit/s with 4 ranks. Ranks that exchange whole vectors add all of it after
// it has come; with 2 ranks rings were faster from 16 MiB on at 1 Gbit/s, and three times unshaped.
inline constexpr double kMeetAtAPort = 1.05, kExchangeWhole = 1.02;

// Of those that round on the way, as rings_take(). Multipliers are applied to what a rank sends.
inline bool network_rounds_take(DataType dtype, OpKind op) {
  const bool rounds = op != OpKind::kMin && op != OpKind::kMax;
  return !(rounds && is_fp8(dtype));
}

// Of those that add in rank order and round once: multipliers are applied before a rank sends,
// which is the same only where sums have the element's own type.
inline bool network_order_takes(DataType dtype, OpKind op) {
  const bool is_wider_in_sums = is_floating(dtype) && size_of(dtype) < sizeof(float);
  return op != OpKind::kPreMulSum || !is_wider_in_sums;
}

}  // namespace tutti
