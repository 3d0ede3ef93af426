#include "support/group.hpp"

#include <optional>
#include <utility>
#include <vector>

#include "communicator/communicator_impl.hpp"
#include "support/check.hpp"

namespace tutti::test {
namespace {

void run_rank(const GroupSpec& spec, Communicator group,
              const std::function<void(Rank&)>& function) {
  const auto device = make_device(spec.backend, group.device());
  Rank rank{group, *device, spec};
  function(rank);
}

// A stream for which the driver makes a queue waits for all kernels of the process: where ranks
// share a GPU, also for one that waits for this rank. Queues stay when their stream goes: here are
// enough.
void make_queues(const Communicator& group) {
  constexpr int kQueues = 32;  // CUDA_DEVICE_MAX_CONNECTIONS has no more
  if (group.impl().topology().ranks_per_gpu <= 1) return;
  const auto device = make_device(Backend::kCuda, group.device());
  std::vector<OwnedStream> streams;
  for (int k = 0; k < kQueues; ++k) streams.emplace_back(*device);
}

std::string run_as_threads(const GroupSpec& spec, const std::function<void(Rank&)>& function) {
  auto made = Communicator::create_in_process(spec.ranks, options_for(spec));
  if (!made.is_ok()) return "create_in_process: " + made.status().to_string() + "\n";
  make_queues(made->front());
  return run_ranks(
      RankKind::kThreads, spec.ranks,
      [&](int rank) {
        run_rank(spec, std::move((*made)[static_cast<std::size_t>(rank)]), function);
      },
      spec.limit);
}

std::string run_as_processes(const GroupSpec& spec, const std::function<void(Rank&)>& function) {
  const UniqueId id = take(UniqueId::create());
  return run_ranks(
      RankKind::kProcesses, spec.ranks,
      [&](int rank) {
        run_rank(spec, take(Communicator::create(id, rank, spec.ranks, options_for(spec))),
                 function);
      },
      spec.limit);
}

}  // namespace

CommunicatorOptions options_for(const GroupSpec& spec) {
  return {.backend = spec.backend, .timeout = spec.timeout};
}

std::string run_group(const GroupSpec& spec, const std::function<void(Rank&)>& function) {
  return spec.kind == RankKind::kThreads ? run_as_threads(spec, function)
                                         : run_as_processes(spec, function);
}

}  // namespace tutti::test
