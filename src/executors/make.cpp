#include "executors/make.hpp"

#include "base/try.hpp"
#include "executors/nccl/executor.hpp"
#include "executors/network/executor.hpp"
#include "executors/peer/executor.hpp"

namespace tutti {
namespace {

std::vector<ExecutorKind>& registered() {
  static std::vector<ExecutorKind> kinds;
  return kinds;
}

}  // namespace

void register_executor(const ExecutorKind& kind) {
  add_to_catalogue(kind.algorithms);
  registered().push_back(kind);
}

Result<Executors> make_executors(GroupServices& group, const ExecutorParts& parts) {
  TUTTI_ASSIGN(auto peers, PeerExecutor::create(group, parts));
  Executors executors{{}, peers.get()};
  executors.all.push_back(std::move(peers));
  executors.all.push_back(std::make_unique<NcclExecutor>(group, parts));
  executors.all.push_back(std::make_unique<NetworkExecutor>(group, parts.network));
  for (const ExecutorKind& kind : registered()) {
    TUTTI_ASSIGN(auto made, kind.make(group));
    executors.all.push_back(std::move(made));
  }
  return executors;
}

}  // namespace tutti
