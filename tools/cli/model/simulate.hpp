// The time of an operation on a cluster: the very programs that the network executor runs
// (algorithms/network_program.hpp), cut into chunks as it cuts them (executors/network/
// partitions.hpp), in a discrete-event simulation whose links serve messages in order.
//
// Ranks that behave alike are simulated once ("folded"): a message to such a rank arrives at the
// one that stands for all of them. So 65,536 ranks cost no more than a few. Where the programs of
// all ranks have few enough steps together, all are compared, and the time is the same as without
// folding, to the last bit. Otherwise one node stands for all: if some ranks of others do the same,
// exactly; or else approximately.
#pragma once

#include <cstddef>
#include <cstdint>

#include "algorithms/network_program.hpp"
#include "model/cluster_model.hpp"
#include "tutti/status.hpp"

namespace tutti::model {

struct SimulatedOperation {
  NetworkSchedule schedule = nullptr;
  // As NetworkShape has them.
  std::size_t count = 0, stride = 0, unit = 1;
  int root = 0;
  std::size_t element_bytes = 4;
  std::size_t chunk_bytes = 64 * 1024;
  std::size_t most_scratch_bytes = 16 * 1024 * 1024;  // of a partition
  // At most so many chunks to one peer and in one direction whose receiver has not used them yet:
  // staging slots, given back by a credit that takes the link's delay. 0: any number.
  int slots = 0;
};

enum class Folding { kWherePossible, kNever };

struct SimulatedTime {
  double us = 0;             // of the slowest rank
  std::uint64_t events = 0;  // that were simulated
  int simulated_ranks = 0;   // fewer than the cluster has where it was folded
  double sent_bytes = 0;     // on the wire of the busiest link between nodes, one direction
  double busy_part = 0;      // of the time, for how much that link was sending
  // Whether ranks did not quite what they would, so that they behave alike
  // (ClusterProgram::Form::kAlike); and by which part the payload was more than the operation's.
  bool is_approximate = false;
  double padded_part = 0;
};

// kInvalidArgument: fewer than 2 ranks, a rate that is not a positive number, a program without an
// end. kUnsupported: too many ranks that do not behave alike; the text says how many.
Result<SimulatedTime> simulate(const SimulatedOperation& operation, const ClusterModel& cluster,
                               Folding folding = Folding::kWherePossible);

}  // namespace tutti::model
