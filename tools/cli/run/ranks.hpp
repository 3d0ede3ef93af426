// Starts the ranks of `tutti run` and stays with them until all have ended.
#pragma once

#include "run/options.hpp"

namespace tutti::cli {

// The environment of a rank, "NAME=value": this process's, with what torchrun would set in place of
// what another launcher has set.
std::vector<std::string> environment_of_rank(int rank, int ranks, int port);

// The exit code. A failure here is one to start at all.
Result<int> run_ranks(const RunOptions& options);

}  // namespace tutti::cli
