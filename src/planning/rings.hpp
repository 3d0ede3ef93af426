// Which of two rings is meant where one is taken: the one that goes one way, or the one that comes
// around both ways. A row that is forced is what its name says.
#pragma once

#include <cstddef>
#include <string>

#include "planning/selection.hpp"

namespace tutti {

struct RingChoice {
  const Algorithm* row = nullptr;  // null: a ring both ways alone, which is not to be taken
  std::string why;                 // of this one and not the other; empty where there is no other
};

// Of `row` and the other ring of its collective, by TUTTI_RING_BIDIRECTIONAL_MAX_BYTES: 0 one way,
// -1 both ways, a number both ways up to so many bytes. -2: the first of `entry`, if it compares
// both, or names the one both ways; else by the model, where that was fitted to both; else by what
// a machine's size is. `entry`: what a table says, or null. Rows that are no rings stay as they
// are.
RingChoice ring_meant(const Selection& selection, const Algorithm& row, const TuningEntry* entry);

// Whether the ring of a row that is not one of two goes both ways, by the same setting. -2: by what
// a machine's size is.
bool goes_both_ways(const Selection& selection);

// Up to which size a ring comes around both ways where nobody measured it and no model knows: what
// CTRAN's rings were measured to cross at on 8 to 64 hosts, in proportion to the ranks.
std::size_t bidirectional_bytes_of(const Topology& topology);

// Likewise of rings over the network. Hosts without GPUs have half of an H100's limit: between 8
// hosts over TCP, rings both ways were slower at 4 MiB at 200 Mbit/s and 1 Gbit/s, and gained most
// for small messages and long delays (results/namespaces). CTRAN's own constants (4 MiB on Hopper,
// 128 MiB on Blackwell) are its crossings on 8 and 64 hosts; taken for all numbers of hosts they
// would be too small for the one and too large for the other.
std::size_t bidirectional_network_bytes_of(const Topology& topology);

}  // namespace tutti
