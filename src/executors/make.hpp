// The executors that every group has.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "executors/executor.hpp"

namespace tutti {

class NcclDriver;
class TuningTable;

// What they are made with; all outlives them.
struct ExecutorParts {
  NcclDriver* nccl = nullptr;  // null: not loadable
  const TuningTable& table;
  const std::string& tune;  // the text of TUTTI_TUNE
  bool deterministic = false;
};

std::vector<std::unique_ptr<Executor>> make_executors(GroupServices& group,
                                                      const ExecutorParts& parts);

}  // namespace tutti
