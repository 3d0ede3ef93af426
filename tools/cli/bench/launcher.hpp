// Runs one group of ranks: as processes of their own, or as threads of this one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/options.hpp"
#include "bench/rank.hpp"
#include "bench/supervisor.hpp"

namespace tutti::cli {

struct GroupJob {
  int ranks = 1;
  LaunchKind launch = LaunchKind::kProcesses;
  bool joins = false;                   // another launcher started the ranks; this is one of them
  CommunicatorOptions options = {};     // backend and timeout
  std::vector<std::string> words = {};  // what asks this command for the work of one process
  RankWork work = {};                   // what a thread does, or a launcher's rank
};

// `on_report` is called from one thread at a time. Where this process is one of a launcher's ranks,
// every rank hears what all ranks measured, so that all come to the same result. A failure here is
// one to start at all.
Result<Supervision> run_group(const GroupJob& job,
                              const std::function<void(int rank, const Report&)>& on_report);

}  // namespace tutti::cli
