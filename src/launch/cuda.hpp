// Runs a body as a grid on a stream.
#pragma once

#include "algorithms/catalogue.hpp"
#include "drivers/cuda.hpp"
#include "transport/work.hpp"

namespace tutti {

// Returns once enqueued. `threads` is rounded up to whole warps, at least one thread per rank.
Status launch_on_cuda(CudaDriver& cuda, CudaKernel kernel, const Work& work, int threads,
                      Stream stream);

// Loads every kernel of the catalogue on the current device, now: a kernel that is loaded lazily
// would wait for one that spins.
Status load_all_kernels(CudaDriver& cuda);

}  // namespace tutti
