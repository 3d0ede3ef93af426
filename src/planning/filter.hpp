// Whether a row can run what is asked for.
#pragma once

#include <string>

#include "algorithms/catalogue.hpp"
#include "planning/request.hpp"
#include "planning/table.hpp"
#include "topology/topology.hpp"

namespace tutti {

// Empty if it can; else the reason, worded to follow the algorithm's name and a colon: "needs NCCL,
// which ...".
std::string why_not(const Algorithm& row, const Request& request, const Topology& topology);

// Whether it would only do what a switch does by a loop over the peers. Such rows run when they are
// named, to test them.
bool is_emulated(const Algorithm& row, const Topology& topology);

// As why_not(), of a row that nobody named.
std::string why_not_unnamed(const Algorithm& row, const Request& request, const Topology& topology);

// The most blocks that the request's budget of multiprocessors leaves a grid.
int blocks_within(const Request& request, const Topology& topology);

// How many bytes (1 to kVectorBytes, a power of two) kernels can access at once in the pieces of
// all ranks, if the buffer itself is aligned to kVectorBytes. kVectorBytes if the collective has no
// pieces or pieces of unequal lengths, and on the host, which copies bytes.
int width_of_pieces(const Request& request, const Topology& topology);

// With which buffers a table has measured a row that it names.
enum class MeasuredWith : std::uint8_t { kNothing, kSymmetric, kPlain };
inline MeasuredWith measured_by(const TuningEntry& entry) {
  return entry.plain ? MeasuredWith::kPlain : MeasuredWith::kSymmetric;
}

// Why it may be had by its name alone, though it can run; empty if `auto` may take it.
std::string why_not_by_itself(const Algorithm& row, const Request& request,
                              const Topology& topology, MeasuredWith measured);

}  // namespace tutti
