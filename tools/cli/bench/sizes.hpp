// Which sizes `tutti bench` measures.
#pragma once

#include "bench/options.hpp"

namespace tutti::cli {

// Fills in `bytes` and `hidden`; the backend, the collective and the type are known.
Status check_sizes(BenchOptions& options, const BenchArguments& arguments);

}  // namespace tutti::cli
