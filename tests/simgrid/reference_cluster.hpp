// Programs of the network on SimGrid, as a second opinion on the simulation: each rank is an actor
// that sends and receives what its program says. Messages that share a link share its rate there,
// whereas the simulation serves them in order. So both agree where each step is one chunk, and
// where messages that share a link do not wait for one another's successors.
#pragma once

#include <cstddef>
#include <vector>

#include "algorithms/network_program.hpp"
#include "executors/network/partitions.hpp"

namespace tutti::test {

struct ReferenceRun {
  NetworkSchedule schedule = nullptr;
  int ranks = 2;
  std::size_t count = 0;  // of fp32
  double bytes_per_s = 1, delay_s = 0;
};

// What the programs of all ranks are cut into: one chunk a step, no partitions.
std::vector<NetworkPartitions> programs_of(const ReferenceRun& run);

// Simulated seconds of each run until its slowest rank has ended. SimGrid knows one platform a
// process, so all runs are told together, once.
std::vector<double> seconds_on_simgrid(const std::vector<ReferenceRun>& runs);

}  // namespace tutti::test
