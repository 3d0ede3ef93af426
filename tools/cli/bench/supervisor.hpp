// Watches the processes of a group of ranks until each has ended, and gathers what they report.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "bench/child_process.hpp"
#include "bench/frame.hpp"
#include "bench/measurement.hpp"

namespace tutti::cli {

struct RankProcess {
  ChildProcess process;
  Fd reports;  // non-blocking read end of its pipe
};

struct Patience {
  // A group from which nothing is heard for so long is stuck.
  std::chrono::milliseconds quiet{60000};
  // After the first failure the other ranks have so long to end by themselves.
  std::chrono::milliseconds grace{5000};
};

struct Supervision {
  std::vector<std::string> failures;  // "rank 3: ended by signal 9 (Killed)", first come first
  int interrupted_by = 0;             // signal
};

// Returns when all processes have ended: by themselves, or killed because one failed, all were
// quiet, or this process was interrupted. `on_report` sees measurements and what was skipped.
Supervision supervise(std::vector<RankProcess> ranks, const Patience& patience,
                      const std::function<void(int rank, const Report&)>& on_report);

}  // namespace tutti::cli
