#include "support/group.hpp"

#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "group/communicator_impl.hpp"
#include "support/check.hpp"
#include "support/ranks.hpp"
#include "tutti/collectives.hpp"

namespace tutti::test {
namespace {

void run_rank(const GroupSpec& spec, Communicator group,
              const std::function<void(Rank&)>& function) {
  const auto device = make_device(spec.backend, group.device());
  if (spec.prepared) require_ok(group.prepare());
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

std::string run_as_processes(const std::vector<NamedRun>& series) {
  std::vector<UniqueId> ids;
  for (std::size_t k = 0; k < series.size(); ++k) ids.push_back(take(UniqueId::create()));
  const GroupSpec& first = series.front().spec;
  return run_ranks(
      RankKind::kProcesses, first.ranks,
      [&](int rank) {
        for (std::size_t k = 0; k < series.size(); ++k) {
          const auto& [name, spec, function] = series[k];
          run_rank(spec, take(Communicator::create(ids[k], rank, spec.ranks, options_for(spec))),
                   function);
        }
      },
      first.limit);
}

// Says how long each of a series took, and in which something was wrong.
std::function<void(Rank&)> named(const NamedRun& run) {
  return [&run](Rank& rank) {
    const auto start = std::chrono::steady_clock::now();
    try {
      run.function(rank);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      if (rank.number() == 0) fmt::print("   {} ({:.1f} s)\n", run.name, took.count());
    } catch (const std::exception& failure) {
      throw Failure(run.name + ": " + failure.what());
    }
  };
}

}  // namespace

bool Rank::shares_gpu() const { return group.impl().topology().ranks_per_gpu > 1; }
void prepare_all(std::span<Communicator> groups) {
  on_all_ranks(static_cast<int>(groups.size()),
               [&](int rank) { require_ok(groups[static_cast<std::size_t>(rank)].prepare()); });
}

void Rank::meet() const { (void)take(group.allocate(256)); }
// Not on the null stream, which ranks of a GPU share.
void Rank::meet_by_barrier() const {
  const OwnedStream stream(device);
  require_ok(barrier(group, {.stream = stream.get()}));
  stream.wait();
  require_ok(group.status());
}
void Rank::meet_before_freeing() const {
  if (shares_gpu() && spec.kind == RankKind::kThreads) meet();
}

CommunicatorOptions options_for(const GroupSpec& spec) {
  return {.backend = spec.backend, .timeout = spec.timeout};
}

std::string run_group(const GroupSpec& spec, const std::function<void(Rank&)>& function) {
  return spec.kind == RankKind::kThreads ? run_as_threads(spec, function)
                                         : run_as_processes({{"", spec, function}});
}

std::string run_series(const std::vector<NamedRun>& series) {
  std::vector<NamedRun> with_names = series;
  for (std::size_t k = 0; k < series.size(); ++k) with_names[k].function = named(series[k]);
  if (series.front().spec.kind == RankKind::kProcesses) return run_as_processes(with_names);
  std::string wrong;
  for (const NamedRun& run : with_names) {
    if (wrong.empty()) wrong = run_as_threads(run.spec, run.function);
  }
  return wrong;
}

}  // namespace tutti::test
