// One call as the simulation runs it: which programs there are, and how its message is cut.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "algorithms/catalogue.hpp"
#include "algorithms/collective.hpp"
#include "algorithms/network_program.hpp"
#include "model/links.hpp"
#include "model/simulate.hpp"
#include "tutti/status.hpp"
#include "tutti/types.hpp"

namespace tutti::model {

struct ModelledAlgorithm {
  std::string_view name;  // "network_ring"
  NetworkSchedule schedule = nullptr;
  Crossing (*between)(int ranks, int nodes) = nullptr;
  bool needs_nodes = false;  // two or more
  bool (*takes)(DataType, OpKind) = nullptr;
};

// Over a network: those of the network executor, of any collective but send_recv, which is one
// message. Of kernels: the rings of all_reduce. Empty: none.
std::vector<ModelledAlgorithm> modelled_algorithms(Collective collective, Chunks chunks);

struct ModelledCall {
  Collective collective = Collective::kAllReduce;
  NetworkSchedule schedule = nullptr;
  Crossing (*between)(int ranks, int nodes) = nullptr;  // the algorithm's cost; null: not known
  DataType dtype = DataType::kFloat32;
  std::size_t bytes = 0;  // of the larger buffer; rounded down to whole elements of each rank
  int root = 0;
  // As measured; 0: as the executor chooses them, or the kernel's grid.
  std::size_t chunk_bytes = 0;
  int blocks = 0;
};

SimulatedOperation operation_of(const ModelledCall& call, const Links& links);

// Messages that the first rank sends, about: what a simulation takes grows with it.
std::size_t messages_of(const SimulatedOperation& operation, const ClusterModel& cluster);

}  // namespace tutti::model
