#include "support/group.hpp"

#include <optional>
#include <utility>
#include <vector>

#include "support/check.hpp"

namespace tutti::test {
namespace {

void run_rank(const GroupSpec& spec, Communicator group,
              const std::function<void(Rank&)>& function) {
  const auto device = make_device(spec.backend, group.device());
  Rank rank{group, *device, spec};
  function(rank);
}

std::string run_as_threads(const GroupSpec& spec, const std::function<void(Rank&)>& function) {
  auto made = Communicator::create_in_process(spec.ranks, options_for(spec));
  if (!made.is_ok()) return "create_in_process: " + made.status().to_string() + "\n";
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
