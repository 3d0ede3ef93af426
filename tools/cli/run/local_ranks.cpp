#include "run/local_ranks.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <sched.h>
#include <string_view>
#include <utility>

#include "base/try.hpp"
#include "drivers/sockets.hpp"
#include "run/cores.hpp"
#include "run/pipes.hpp"

namespace tutti::cli {
Result<LocalRanks> LocalRanks::start(const LocalRanksOptions& options) {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (options.bind) ::sched_getaffinity(0, sizeof usable, &usable);
  LocalRanks ranks;
  for (int local_rank = 0; local_rank < options.first.local_ranks; ++local_rank) {
    TUTTI_TRY(ranks.start_rank(options, local_rank, usable));
  }
  return ranks;
}

Status LocalRanks::start_rank(const LocalRanksOptions& options, int local_rank,
                              const cpu_set_t& usable) {
  RankPlace place = options.first;
  place.rank += local_rank;
  place.local_rank = local_rank;
  Command command{.program = options.program,
                  .arguments = options.arguments,
                  .environment = environment_of_rank(place, options.settings),
                  .inherited = {},
                  .output = STDOUT_FILENO,
                  .error = STDERR_FILENO,
                  .own_group = true};
  if (options.bind) command.cores = cores_of_rank(usable, local_rank, place.local_ranks);
  const Fd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  command.input = place.rank == 0 && options.input >= 0 ? options.input : nothing.get();
  std::array<Fd, kRankStreams> pipes, writers;
  for (std::size_t i = 0; i < kRankStreams && options.capture; ++i) {
    TUTTI_ASSIGN(Pipe pipe, make_pipe());
    pipes[i] = std::move(pipe.read);
    writers[i] = std::move(pipe.write);
    (i == kStandardOutput ? command.output : command.error) = writers[i].get();
  }
  TUTTI_ASSIGN(ChildProcess process, ChildProcess::start(command));
  auto ended = real_sockets().watch_process(process.pid());
  ranks_.push_back({.number = place.rank,
                    .process = std::move(process),
                    .ended = ended.is_ok() ? std::move(ended).value() : Fd(),
                    .pipes = std::move(pipes)});
  return Status::ok();
}

std::vector<int> LocalRanks::running() const {
  std::vector<int> numbers;
  for (const Rank& rank : ranks_) {
    if (!rank.done) numbers.push_back(rank.number);
  }
  return numbers;
}

void LocalRanks::add_descriptors(std::vector<pollfd>& descriptors) const {
  for (const Rank& rank : ranks_) {
    if (rank.done) continue;
    descriptors.push_back({.fd = rank.ended.get(), .events = POLLIN, .revents = 0});
    for (const Fd& pipe : rank.pipes) {
      descriptors.push_back({.fd = pipe.get(), .events = POLLIN, .revents = 0});
    }
  }
}

Status LocalRanks::look(RankEvents& events) {
  for (Rank& rank : ranks_) {
    if (rank.done) continue;
    // Asked before its output is read: what it printed is then there.
    const auto end = rank.process.poll_end();
    for (std::size_t i = 0; i < kRankStreams; ++i) {
      Fd& pipe = rank.pipes[i];
      const auto tell = [&](std::string_view bytes) { events.printed(rank.number, i, bytes); };
      if (pipe.valid() && !read_pipe(pipe.get(), tell)) pipe.reset();
    }
    rank.done = end.has_value();
    if (end) events.ended(rank.number, *end);
  }
  return Status::ok();
}

void LocalRanks::signal(int number) {
  for (Rank& rank : ranks_) rank.process.signal(number);
}

std::string LocalRanks::place_of(int /*rank*/) const { return {}; }

}  // namespace tutti::cli
