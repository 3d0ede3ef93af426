// Starts the ranks of `tutti run`, and stays with them until all have ended.
#pragma once

#include "run/options.hpp"

namespace tutti::cli {

// The exit code, as run_job() has it. A failure here is one to start at all.
Result<int> run_ranks(const RunOptions& options);

}  // namespace tutti::cli
