// What an operation is expected to take where nothing was measured. Good for the order of
// algorithms and the sizes at which it changes; not for figures.
#pragma once

#include <cstddef>

#include "algorithms/catalogue.hpp"
#include "topology/topology.hpp"

namespace tutti {

// time = base + steps * hop + bytes on the wire / bandwidth
struct MachineModel {
  double base_us = 0;         // an operation that does nothing
  double hop_us = 0;          // a flag from one rank to another, one way
  double bandwidth_gbps = 0;  // of one rank, sending to all others at once
};

MachineModel machine_model(const Topology& topology);

// `bytes` of one rank's input.
double predicted_us(const Algorithm& algorithm, int ranks, std::size_t bytes,
                    const Topology& topology);

}  // namespace tutti
