// What an operation is expected to take where nothing was measured. Good for the order of
// algorithms and the sizes at which it changes; not for figures.
#pragma once

#include <cstddef>

#include "algorithms/catalogue.hpp"
#include "topology/topology.hpp"

namespace tutti {

// time = base + passes * (steps * hop + copies * copy)
//      + bytes on the wire / bandwidth + copies * bytes / bandwidth of a copy
//
// with one pass and no copy where peers reach the buffers.
struct MachineModel {
  double base_us = 0;         // an operation that does nothing
  double hop_us = 0;          // a flag from one rank to another, one way
  double bandwidth_gbps = 0;  // of one rank, sending to all others at once
  double copy_us = 0;         // a copy into or out of staging that moves next to nothing
  double copy_gbps = 0;       // of such a copy
};

MachineModel machine_model(const Topology& topology);

// Whether the model was fitted to times of tutti's own rows on such a machine: GPUs of Hopper's
// generation with NVLink.
bool is_fitted(const Topology& topology);

// Kernels move vectors of so many bytes. If a piece begins within a vector, they move fewer bytes
// at a time.
inline constexpr int kVectorBytes = 16;

// The time to move bytes with accesses of `width` bytes over that with whole vectors.
double slowdown(const Algorithm& algorithm, int width);

// An operation as far as it can cost time.
struct Load {
  int ranks = 1;
  std::size_t bytes = 0;             // of the larger side
  std::size_t staging_bytes = 0;     // what goes through staging in one pass; 0: nothing has to
  double sent = 1;                   // bytes on the wire for each one that has to be there
  std::size_t staged_bytes = bytes;  // of the side that goes through staging
  int width = kVectorBytes;          // of accesses to pieces: width_of_pieces()
};
std::size_t passes_of(const Load& load);  // through staging; 0: none

double predicted_us(const Algorithm& algorithm, const Load& load, const Topology& topology);

}  // namespace tutti
