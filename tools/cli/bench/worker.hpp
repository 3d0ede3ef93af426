// One rank of a benchmark: makes buffers, measures every algorithm at every size, checks results.
#pragma once

#include <functional>

#include "bench/measurement.hpp"
#include "bench/options.hpp"
#include "tutti/communicator.hpp"

namespace tutti::cli {

using Reporter = std::function<Status(const Report&)>;

// Collective. Reports a Measurement per size and algorithm; a failure ends the group's other ranks,
// too, and is returned.
Status run_rank(Communicator& communicator, const BenchOptions& options, const Reporter& reporter);

// The whole life of a rank that is a process: joins the group the launcher made, runs, and reports
// over `options.worker_fd`. Returns the exit code.
int run_rank_process(const BenchOptions& options);

}  // namespace tutti::cli
