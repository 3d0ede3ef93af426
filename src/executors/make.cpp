#include "executors/make.hpp"

#include "base/try.hpp"
#include "executors/nccl/executor.hpp"
#include "executors/peer/executor.hpp"

namespace tutti {

Result<std::vector<std::unique_ptr<Executor>>> make_executors(GroupServices& group,
                                                              const ExecutorParts& parts) {
  std::vector<std::unique_ptr<Executor>> executors;
  TUTTI_ASSIGN(auto peers, PeerExecutor::create(group, parts));
  executors.push_back(std::move(peers));
  executors.push_back(std::make_unique<NcclExecutor>(group, parts));
  return executors;
}

}  // namespace tutti
