#include "bench/launcher.hpp"

#include <fmt/core.h>

#include <mutex>
#include <thread>

#include "base/fd.hpp"
#include "base/try.hpp"
#include "bench/child_process.hpp"
#include "bootstrap/bootstrap.hpp"
#include "group/communicator_impl.hpp"

namespace tutti::cli {
namespace {

Result<RankProcess> start_rank(const GroupJob& job, int rank, int group_fd) {
  TUTTI_ASSIGN(Pipe pipe, make_pipe());
  Command command{
      .program = "/proc/self/exe",
      .arguments = job.words,
      .environment = environment_with(
          {fmt::format("TUTTI_RANK={}", rank), fmt::format("TUTTI_SIZE={}", job.ranks),
           fmt::format("TUTTI_LOCAL_RANK={}", rank), fmt::format("TUTTI_LOCAL_SIZE={}", job.ranks),
           fmt::format("TUTTI_GROUP_FD={}", group_fd)}),
      .inherited = {pipe.write.get(), group_fd}};
  command.arguments.insert(command.arguments.end(),
                           {"--worker-fd", fmt::format("{}", pipe.write.get())});
  TUTTI_ASSIGN(ChildProcess process, ChildProcess::start(command));
  return RankProcess{.process = std::move(process), .reports = std::move(pipe.read)};
}

using OnReport = std::function<void(int rank, const Report&)>;

Result<Supervision> run_processes(const GroupJob& job, const OnReport& on_report) {
  TUTTI_ASSIGN(const GroupId id, GroupId::local());
  TUTTI_ASSIGN(const Fd group_fd, group_id_descriptor(id));
  std::vector<RankProcess> processes;
  for (int rank = 0; rank < job.ranks; ++rank) {
    TUTTI_ASSIGN(RankProcess process, start_rank(job, rank, group_fd.get()));
    processes.push_back(std::move(process));
  }
  // A stuck rank is ended by its own deadlines; this is for one that cannot be.
  const Patience patience{.quiet = 2 * job.options.timeout + std::chrono::seconds(30)};
  return supervise(std::move(processes), patience, on_report);
}

Result<Supervision> run_threads(const GroupJob& job, const OnReport& on_report) {
  TUTTI_ASSIGN(std::vector<Communicator> communicators,
               Communicator::create_in_process(job.ranks, job.options));
  Supervision result;
  std::mutex mutex;
  std::vector<std::thread> threads;
  threads.reserve(communicators.size());
  for (int rank = 0; rank < job.ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const Reporter reporter = [&](const Report& report) {
        const std::lock_guard lock(mutex);
        if (!std::holds_alternative<Done>(report)) on_report(rank, report);
        return Status::ok();
      };
      const Status status =
          run_rank(communicators[static_cast<std::size_t>(rank)], job.work, reporter);
      const std::lock_guard lock(mutex);
      if (!status.is_ok()) {
        result.failures.push_back(fmt::format("rank {}: {}", rank, status.to_string()));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return result;
}

bool is_measured_by_all(const Report& report) {
  return std::holds_alternative<Measurement>(report) ||
         std::holds_alternative<OverlapMeasurement>(report) ||
         std::holds_alternative<GatherMatmulMeasurement>(report);
}

// Collective: gives every rank what all of them measured.
Status exchange(Communicator& communicator, const GroupJob& job, const Report& mine,
                const OnReport& on_report) {
  const std::string text = to_json_text(mine);
  const ByteView bytes = std::as_bytes(std::span(text));
  TUTTI_ASSIGN(const auto all,
               communicator.impl().bootstrap().all_gather(bytes, Deadline(job.options.timeout)));
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const std::string_view theirs(reinterpret_cast<const char*>(all[rank].data()),
                                  all[rank].size());
    TUTTI_ASSIGN(const Report report, report_from_json_text(theirs));
    on_report(static_cast<int>(rank), report);
  }
  return Status::ok();
}

Result<Supervision> run_joined(const GroupJob& job, const OnReport& on_report) {
  TUTTI_ASSIGN(Communicator communicator, Communicator::create_from_environment(job.options));
  const Reporter reporter = [&](const Report& report) {
    if (is_measured_by_all(report)) return exchange(communicator, job, report, on_report);
    if (std::holds_alternative<Skipped>(report)) on_report(communicator.rank(), report);
    return Status::ok();
  };
  Supervision result;
  const Status status = run_rank(communicator, job.work, reporter);
  if (!status.is_ok()) {
    result.failures.push_back(fmt::format("rank {}: {}", communicator.rank(), status.to_string()));
  }
  return result;
}

}  // namespace

Result<Supervision> run_group(const GroupJob& job, const OnReport& on_report) {
  if (job.joins) return run_joined(job, on_report);
  return job.launch == LaunchKind::kThreads ? run_threads(job, on_report)
                                            : run_processes(job, on_report);
}

}  // namespace tutti::cli
