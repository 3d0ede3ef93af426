// Peer access, proved by moving data.
#pragma once

#include <string>
#include <vector>

#include "drivers/cuda.hpp"

namespace tutti::cli {

struct PeerTransfer {
  int from = 0, to = 0;
  bool allowed = false;  // the driver's word
  bool intact = false;   // a pattern arrived
  double gbps = 0;       // of one copy engine; 0: not measured
  std::string why = {};  // what failed
};

// Every ordered pair of GPUs, one after the other.
std::vector<PeerTransfer> try_transfers(CudaDriver& cuda, int gpus);

}  // namespace tutti::cli
