#include "run/ranks.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>

#include "base/deadline.hpp"
#include "base/try.hpp"
#include "bench/child_process.hpp"
#include "bench/interrupts.hpp"
#include "bootstrap/failure_notice.hpp"
#include "drivers/sockets.hpp"
#include "run/cores.hpp"
#include "run/lines.hpp"
#include "run/port.hpp"
#include "tell.hpp"

namespace tutti::cli {
namespace {

constexpr int kSignalled = 128;  // as shells have it

struct Stream {
  std::FILE* to;
  Fd pipe = {};  // where the rank writes; not open if it writes to ours
  Lines lines = {};
};

struct Rank {
  ChildProcess process;
  Fd ended;  // readable once it has; not open where the kernel cannot say
  std::array<Stream, 2> streams;
  bool done = false;
};

class Launch {
 public:
  explicit Launch(const RunOptions& options) : options_(options) {
    CPU_ZERO(&usable_);
    if (options_.bind) ::sched_getaffinity(0, sizeof usable_, &usable_);
  }

  Result<int> run() {
    TUTTI_ASSIGN(const Port port, reserve_port());
    for (int rank = 0; rank < options_.ranks; ++rank) TUTTI_TRY(start(rank, port.number));
    while (running() > 0) {
      wait();
      if (interrupts_.received() != 0 && exit_code_ == 0) interrupt();
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank) look_at(rank);
      if (grace_ && grace_->passed()) kill_all();
    }
    return exit_code_;
  }

 private:
  Status start(int rank, int port) {
    Command command{.program = options_.program,
                    .arguments = options_.arguments,
                    .environment = environment_of_rank(rank, options_.ranks, port),
                    .inherited = {},
                    .output = STDOUT_FILENO,
                    .error = STDERR_FILENO,
                    .own_group = true};
    if (options_.bind) command.cores = cores_of_rank(usable_, rank, options_.ranks);
    Fd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    // A program in a group of its own must not read from a terminal.
    if (rank > 0 || ::isatty(STDIN_FILENO) == 1) command.input = nothing.get();
    std::array<Stream, 2> streams{{{.to = stdout}, {.to = stderr}}};
    std::array<Fd, 2> writers;
    for (std::size_t i = 0; i < streams.size() && options_.prefix; ++i) {
      TUTTI_ASSIGN(Pipe pipe, make_pipe());
      streams[i].pipe = std::move(pipe.read);
      writers[i] = std::move(pipe.write);
      (i == 0 ? command.output : command.error) = writers[i].get();
    }
    TUTTI_ASSIGN(ChildProcess process, ChildProcess::start(command));
    auto ended = real_sockets().watch_process(process.pid());
    ranks_.push_back({.process = std::move(process),
                      .ended = ended.is_ok() ? std::move(ended).value() : Fd(),
                      .streams = std::move(streams)});
    return Status::ok();
  }

  std::size_t running() const {
    return static_cast<std::size_t>(
        std::count_if(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return !rank.done; }));
  }

  void wait() {
    std::vector<pollfd> descriptors;
    for (const Rank& rank : ranks_) {
      if (rank.done) continue;
      descriptors.push_back({.fd = rank.ended.get(), .events = POLLIN, .revents = 0});
      for (const Stream& stream : rank.streams) {
        descriptors.push_back({.fd = stream.pipe.get(), .events = POLLIN, .revents = 0});
      }
    }
    constexpr int kBetweenLooks = static_cast<int>(Deadline::kBetweenLooks.count());
    interrupts_.poll(descriptors, grace_ ? grace_->poll_ms() : kBetweenLooks);
  }

  void look_at(std::size_t index) {
    Rank& rank = ranks_[index];
    if (rank.done) return;
    // Asked before its output is read: what it printed is then there.
    const auto end = rank.process.poll_end();
    for (Stream& stream : rank.streams) {
      const auto print = [&](std::string_view line) {
        tell_as_is(stream.to, fmt::format("[{}] {}\n", index, line));
      };
      if (!stream.pipe.valid()) continue;
      if (!stream.lines.read_from(stream.pipe.get(), print)) stream.pipe.reset();
      if (end) stream.lines.finish(print);
      std::fflush(stream.to);
    }
    rank.done = end.has_value();
    if (end && *end != 0) fail(static_cast<int>(index), *end);
  }

  // What comes after the first failure is its consequence.
  void fail(int rank, int wait_status) {
    if (exit_code_ != 0) return;
    exit_code_ =
        WIFSIGNALED(wait_status) ? kSignalled + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
    const bool others = running() > 0;
    tell_line(stderr, "tutti run: rank {} {}{}", rank, describe_end(wait_status),
              others ? "; the other ranks are ended" : "");
    end_all(SIGTERM);
  }

  void interrupt() {
    exit_code_ = kSignalled + interrupts_.received();
    end_all(interrupts_.received());
  }

  void end_all(int signal) {
    for (Rank& rank : ranks_) rank.process.signal(signal);
    grace_.emplace(options_.grace);
  }

  void kill_all() {
    std::vector<int> late;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      if (ranks_[rank].done) continue;
      ranks_[rank].process.kill();
      late.push_back(static_cast<int>(rank));
    }
    if (!killed_ && !late.empty()) {
      tell_line(stderr, "tutti run: {} did not end within {} s and {} killed", rank_list(late),
                options_.grace.count(), late.size() == 1 ? "is" : "are");
    }
    killed_ = true;
  }

  const RunOptions& options_;
  cpu_set_t usable_;
  Interrupts interrupts_;
  std::vector<Rank> ranks_;
  std::optional<Deadline> grace_;
  bool killed_ = false;
  int exit_code_ = 0;
};

}  // namespace

std::vector<std::string> environment_of_rank(int rank, int ranks, int port) {
  std::vector<std::string> environment = environment_with(
      {fmt::format("RANK={}", rank), fmt::format("WORLD_SIZE={}", ranks),
       fmt::format("LOCAL_RANK={}", rank), fmt::format("LOCAL_WORLD_SIZE={}", ranks),
       "MASTER_ADDR=127.0.0.1", fmt::format("MASTER_PORT={}", port)});
  // What is read before these, or would make torch look for another launcher.
  constexpr std::array<std::string_view, 8> kOthers = {"TUTTI_RANK=",
                                                       "TUTTI_SIZE=",
                                                       "TUTTI_LOCAL_RANK=",
                                                       "TUTTI_LOCAL_SIZE=",
                                                       "TUTTI_GROUP_FD=",
                                                       "TORCHELASTIC_RUN_ID=",
                                                       "TORCHELASTIC_RESTART_COUNT=",
                                                       "TORCHELASTIC_USE_AGENT_STORE="};
  std::erase_if(environment, [&](const std::string& setting) {
    return std::ranges::any_of(kOthers,
                               [&](std::string_view other) { return setting.starts_with(other); });
  });
  return environment;
}

Result<int> run_ranks(const RunOptions& options) { return Launch(options).run(); }

}  // namespace tutti::cli
