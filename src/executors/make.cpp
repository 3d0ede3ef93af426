#include "executors/make.hpp"

#include "executors/nccl/executor.hpp"

namespace tutti {

std::vector<std::unique_ptr<Executor>> make_executors(GroupServices& group,
                                                      const ExecutorParts& parts) {
  std::vector<std::unique_ptr<Executor>> executors;
  executors.push_back(std::make_unique<NcclExecutor>(group, parts));
  return executors;
}

}  // namespace tutti
