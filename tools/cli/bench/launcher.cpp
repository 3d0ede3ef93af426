#include "bench/launcher.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <fmt/core.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <thread>

#include "base/fd.hpp"
#include "base/try.hpp"
#include "bench/supervisor.hpp"
#include "bench/worker.hpp"
#include "bootstrap/bootstrap.hpp"
#include "tutti/communicator.hpp"

namespace tutti::cli {
namespace {

struct Pipe {
  Fd read, write;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return Status(StatusCode::kSystem,
                  fmt::format("cannot make a pipe: {}; `ulimit -n` raises the number of open files",
                              std::strerror(errno)));
  }
  Pipe made{Fd(ends[0]), Fd(ends[1])};
  ::fcntl(made.read.get(), F_SETFL, O_NONBLOCK);
  return made;
}

Result<RankProcess> start_rank(const BenchOptions& options, int rank, int ranks, int group_fd) {
  TUTTI_ASSIGN(Pipe pipe, make_pipe());
  BenchOptions mine = options;
  mine.ranks = {ranks};
  Command command{
      .program = "/proc/self/exe",
      .arguments = to_arguments(mine),
      .environment = environment_with(
          {fmt::format("TUTTI_RANK={}", rank), fmt::format("TUTTI_SIZE={}", ranks),
           fmt::format("TUTTI_LOCAL_RANK={}", rank), fmt::format("TUTTI_LOCAL_SIZE={}", ranks),
           fmt::format("TUTTI_GROUP_FD={}", group_fd)}),
      .inherited = {pipe.write.get(), group_fd}};
  command.arguments.insert(command.arguments.begin(), "bench");
  command.arguments.insert(command.arguments.end(),
                           {"--worker-fd", fmt::format("{}", pipe.write.get())});
  if (!options.trace.empty()) {
    command.arguments.insert(command.arguments.end(), {"--trace", options.trace});
  }
  TUTTI_ASSIGN(ChildProcess process, ChildProcess::start(command));
  return RankProcess{.process = std::move(process), .reports = std::move(pipe.read)};
}

// Puts reports where they belong. Called from one thread at a time.
class Gatherer {
 public:
  Gatherer(int ranks, const std::function<void(const Measurement&)>& on_progress)
      : on_progress_(on_progress) {
    outcome.ranks = ranks;
    outcome.measurements.resize(static_cast<std::size_t>(ranks));
    outcome.operations.resize(static_cast<std::size_t>(ranks));
  }

  void take(int rank, const Report& report) {
    if (const auto* measurement = std::get_if<Measurement>(&report)) {
      if (rank == 0) on_progress_(*measurement);
      outcome.measurements[static_cast<std::size_t>(rank)].push_back(*measurement);
    } else if (const auto* skipped = std::get_if<Skipped>(&report); skipped && rank == 0) {
      outcome.skipped.push_back(*skipped);
    } else if (const auto* traced = std::get_if<Operations>(&report)) {
      outcome.operations[static_cast<std::size_t>(rank)] = traced->operations;
    }
  }

  GroupOutcome outcome;

 private:
  const std::function<void(const Measurement&)>& on_progress_;
};

Result<GroupOutcome> run_processes(const BenchOptions& options, Gatherer gatherer) {
  TUTTI_ASSIGN(const GroupId id, GroupId::local());
  TUTTI_ASSIGN(const Fd group_fd, group_id_descriptor(id));
  const int ranks = gatherer.outcome.ranks;
  std::vector<RankProcess> processes;
  for (int rank = 0; rank < ranks; ++rank) {
    TUTTI_ASSIGN(RankProcess process, start_rank(options, rank, ranks, group_fd.get()));
    processes.push_back(std::move(process));
  }
  // A stuck rank is ended by its own deadlines; this is for one that cannot be.
  const Patience patience{.quiet = 2 * options.timeout + std::chrono::seconds(30)};
  Supervision end = supervise(std::move(processes), patience,
                              [&](int rank, const Report& report) { gatherer.take(rank, report); });
  gatherer.outcome.failures = std::move(end.failures);
  gatherer.outcome.interrupted_by = end.interrupted_by;
  return std::move(gatherer.outcome);
}

Result<GroupOutcome> run_threads(const BenchOptions& options, Gatherer gatherer) {
  const int ranks = gatherer.outcome.ranks;
  TUTTI_ASSIGN(std::vector<Communicator> communicators,
               Communicator::create_in_process(
                   ranks, {.backend = options.backend, .timeout = options.timeout}));
  std::mutex mutex;
  std::vector<std::thread> threads;
  threads.reserve(communicators.size());
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const Reporter reporter = [&](const Report& report) {
        const std::lock_guard lock(mutex);
        gatherer.take(rank, report);
        return Status::ok();
      };
      const Status status =
          run_rank(communicators[static_cast<std::size_t>(rank)], options, reporter);
      const std::lock_guard lock(mutex);
      if (!status.is_ok()) {
        gatherer.outcome.failures.push_back(fmt::format("rank {}: {}", rank, status.to_string()));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return std::move(gatherer.outcome);
}

}  // namespace

Result<GroupOutcome> run_group(const BenchOptions& options, int ranks,
                               const std::function<void(const Measurement&)>& on_progress) {
  Gatherer gatherer(ranks, on_progress);
  return options.launch == LaunchKind::kThreads ? run_threads(options, std::move(gatherer))
                                                : run_processes(options, std::move(gatherer));
}

}  // namespace tutti::cli
