// How a kernel of own_matmul is launched, whatever its gate.
#pragma once

#include <algorithm>

#include "drivers/cuda.hpp"
#include "matmul/kernel/arguments.hpp"
#include "matmul/kernel/kernels.hpp"

namespace tutti {

struct OwnLaunch {
  const OwnKernel& kernel;
  OwnMatmulArguments& arguments;
  void* gate;
  int tiles;        // of clusters, in the gate's order
  int pullers = 0;  // blocks before those that multiply

  // On the current device, of which it may use so many multiprocessors.
  Status enqueue(CudaDriver& cuda, int multiprocessors, Stream stream) const {
    void* parameters[] = {&arguments, gate};
    const int clusters = std::min(tiles, (multiprocessors - pullers) / arguments.cluster);
    return cuda.launch({.kernel = kernel.function,
                        .blocks = pullers + clusters * arguments.cluster,
                        .threads = kOwnMatmulThreads,
                        .cluster = arguments.cluster,
                        .shared_bytes = kernel.shared_bytes,
                        .arguments = parameters,
                        .stream = stream});
  }
};

}  // namespace tutti
