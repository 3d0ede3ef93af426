// How long the pieces of an uneven collective's call are, in elements of the call.
#pragma once

#include <vector>

#include "algorithms/catalogue.hpp"
#include "device/counts.hpp"
#include "tutti/collectives.hpp"

namespace tutti {

struct Lengths {
  // By rank: what this one has for each, and what it takes from each; of reduce_scatter_v the piece
  // of each, in both. Empty where the device alone knows them.
  std::vector<std::size_t> sent = {}, taken = {};
  DeviceCounts on_device = {};

  bool are_on_device() const { return on_device.given != nullptr; }
  // Whether every rank has been told of all of them alike.
  bool are_agreed(Collective collective) const {
    return !are_on_device() && collective != Collective::kAllToAllV;
  }

  // In bytes. On the device the side that no peer touches is known to have an element.
  Sides sides(Collective collective, int rank, std::size_t element_bytes) const;
  // As kernels are told of them.
  PieceCounts counts(Collective collective, DataType dtype) const;
};

// Where the pieces begin that lie one behind the other, and behind the last of them where it ends.
std::vector<std::size_t> firsts_of(const std::vector<std::size_t>& lengths);

}  // namespace tutti
