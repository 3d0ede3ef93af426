// Runs a body as a grid on a stream.
#pragma once

#include "algorithms/catalogue.hpp"
#include "device/kernel_args.hpp"
#include "drivers/cuda.hpp"

namespace tutti {

struct CudaBody {
  CudaKernel kernel = nullptr;
  int threads = 1;            // rounded up to whole warps, at least one thread per rank
  bool starts_early = false;  // see Algorithm
  std::size_t shared_bytes = 0;
  int cluster = 0;  // blocks, which divide those of the grid; 0: launched without clusters
};

// Returns once enqueued. The kernel's arguments are the work, and its messages where it has some.
Status launch_on_cuda(CudaDriver& cuda, const CudaBody& body, const KernelArgs& work,
                      Stream stream);

// Loads every kernel of the rows for so many ranks on the current device, now: a kernel that is
// loaded lazily would wait for one that spins. `compute`: the device's, as Topology::compute. Rows
// that need a newer one are left out: their shared memory may be more than the device has.
Status load_all_kernels(CudaDriver& cuda, int compute, int ranks,
                        std::span<const Algorithm> rows = catalogue());

}  // namespace tutti
