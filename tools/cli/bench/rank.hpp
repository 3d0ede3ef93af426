// The life of a rank of this command: it works in its group, and tells the launcher.
#pragma once

#include <functional>

#include "bench/measurement.hpp"
#include "tutti/communicator.hpp"

namespace tutti::cli {

using Reporter = std::function<Status(const Report&)>;
// Collective.
using RankWork = std::function<Status(Communicator&, const Reporter&)>;

// Peers must not wait for a rank that failed with `status`: ends what they do. Before buffers are
// freed, which waits for what may still run.
void give_up(Communicator& communicator, const Status& status);

// Does the work, on a core of its own where it is the host's, and reports Done at its end.
Status run_rank(Communicator& communicator, const RankWork& work, const Reporter& reporter);

// The whole life of a rank that is a process: joins the group that the launcher made, and reports
// over `worker_fd`. Returns the exit code.
int run_rank_process(int worker_fd, const CommunicatorOptions& options, const RankWork& work);

}  // namespace tutti::cli
