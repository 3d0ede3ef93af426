// The ring all-reduce of torchcomms' CTRAN, as the simulation runs it, so that its published times
// can be compared with simulated ones: its tuner, its partitions, and its two schedules. The
// schedule that goes both ways does so in the all-gather phase alone.
#pragma once

#include <cstddef>
#include <vector>

#include "model/cluster_model.hpp"
#include "model/simulate.hpp"
#include "tutti/status.hpp"

namespace tutti::model {

enum class CtranArchitecture { kHopper, kBlackwell };  // compute capability below 10; 10 and above

// What the tuner selects. Messages are cut into shares of each rank, and shares into chunks.
struct CtranTuning {
  int depth = 1;  // chunks of a share that are meant to be under way
  std::size_t chunk_bytes = 1;
  int slots = 1;   // staging for so many chunks, in each direction
  int blocks = 1;  // of the kernel that adds and copies
  friend bool operator==(const CtranTuning&, const CtranTuning&) = default;
};
CtranTuning tune_ctran_ring(std::size_t bytes, int ranks, CtranArchitecture architecture);

// Bytes of the parts that are reduced one after another, each to its end. The last one has the
// remainder; if that would leave shares of fewer than 16 bytes, the part before it gives it some.
std::vector<std::size_t> ctran_partitions(std::size_t bytes, int ranks, const CtranTuning& tuning);

// Reduce-scatter forwards; the all-gather phase forwards, or both ways. A rank sends its own sum
// back once all of it is complete, and from a copy.
NetworkProgram ctran_ring(const NetworkShape& shape);
NetworkProgram ctran_ring_bidirectional(const NetworkShape& shape);

// What times depend on besides links. The kernel treats one chunk after another with all of its
// blocks: what has come is added or copied, to the output and to the next message; and so is the
// rank's own sum before it goes back.
struct CtranCosts {
  double start_us = 0;
  double block_gb_per_s = 10;  // of one block
  double chunk_us = 0;         // of each chunk: to be told of it, and to tell
  double reverse_us = 0;       // of each chunk too, in the kernel that looks both ways
  friend bool operator==(const CtranCosts&, const CtranCosts&) = default;
};

struct CtranRun {
  std::size_t bytes = 0;
  CtranArchitecture architecture = CtranArchitecture::kHopper;
  bool both_ways = false;
  CtranCosts costs;
};

// Of all partitions, with one rank on each node. Errors: those of simulate(), and kInvalidArgument
// for fewer elements than nodes.
Result<SimulatedTime> simulate_ctran_ring(const CtranRun& run, int nodes, const Link& between);

}  // namespace tutti::model
