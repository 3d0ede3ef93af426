// Machines to give a command line to.
#pragma once

#include "bench/options.hpp"

namespace tutti::cli {

inline const BenchMachine kHostOnly{.gpus = 0, .why_no_gpu = "libcuda.so.1 not found"};
inline const BenchMachine kEightGpus{.gpus = 8, .why_no_gpu = ""};

}  // namespace tutti::cli
