// From a planned operation to the operations that the network engine runs.
#pragma once

#include <span>
#include <vector>

#include "executors/network/engine.hpp"
#include "executors/network/staged_lane.hpp"
#include "executors/planned_operation.hpp"

namespace tutti {

struct NetworkRanks {
  int rank = 0, ranks = 1;
  std::span<const int> node_of = {};
};

// One of a collective, or one for each message of a call. Deadlines are not set. A multiplier that
// lies in memory is read.
std::vector<NetworkOperation> lower_to_network(const PlannedOperation& operation,
                                               const NetworkRanks& ranks);

// The same of buffers on a GPU. `direct`: the wires of all ranks reach memory of their GPUs.
std::vector<StagedTransfer> lower_to_staging(const PlannedOperation& operation,
                                             const NetworkRanks& ranks, bool direct);

}  // namespace tutti
