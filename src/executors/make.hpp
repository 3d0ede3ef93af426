// The executors that every group has.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "executors/executor.hpp"

namespace tutti {

class NcclDriver;
class TuningTable;
struct ProtocolMutation;

// What they are made with; all outlives them.
struct ExecutorParts {
  NcclDriver* nccl = nullptr;  // null: not loadable
  const TuningTable& table;
  const std::string& tune;  // the text of TUTTI_TUNE
  bool deterministic = false;
  const ProtocolMutation* mutation = nullptr;  // tests': what bodies on the host leave out
  std::uint64_t* waits_for = nullptr;          // where these say for whom they wait
};

Result<std::vector<std::unique_ptr<Executor>>> make_executors(GroupServices& group,
                                                              const ExecutorParts& parts);

}  // namespace tutti
