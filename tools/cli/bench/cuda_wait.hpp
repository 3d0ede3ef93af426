// Waiting for a stream of a rank, but never without an end.
#pragma once

#include <chrono>

#include "drivers/cuda.hpp"
#include "tutti/communicator.hpp"

namespace tutti::cli {

// Until all work in `stream` has ended, or the communicator has failed. Kernels of tutti end by
// their own deadlines; `patience` is for a device that does not even do that.
Status wait_for(CudaDriver& cuda, Communicator& communicator, Stream stream,
                std::chrono::milliseconds patience);

}  // namespace tutti::cli
