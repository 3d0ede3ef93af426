#include "run/job.hpp"

#include <signal.h>
#include <sys/wait.h>

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <optional>

#include "base/deadline.hpp"
#include "bench/child_process.hpp"
#include "bootstrap/rank_names.hpp"
#include "exit_code.hpp"
#include "run/lines.hpp"
#include "tell.hpp"

namespace tutti::cli {
namespace {

constexpr int kSignalled = 128;  // as shells have it

class Job final : RankEvents {
 public:
  Job(RankGroup& ranks, const JobOptions& options, const Interrupts& interrupts)
      : ranks_(ranks),
        options_(options),
        interrupts_(interrupts),
        lines_(static_cast<std::size_t>(options.ranks)) {}

  int run() {
    while (!ranks_.running().empty()) {
      wait();
      if (interrupts_.received() != 0 && exit_code_ == 0) interrupt();
      if (const Status status = ranks_.look(*this); !status.is_ok()) lose(status);
      std::fflush(stdout);
      std::fflush(stderr);
      if (grace_ && grace_->passed()) kill_all();
    }
    for (int rank = 0; rank < options_.ranks; ++rank) finish(rank);
    return exit_code_;
  }

 private:
  void wait() const {
    std::vector<pollfd> descriptors;
    ranks_.add_descriptors(descriptors);
    constexpr int kBetweenLooks = static_cast<int>(Deadline::kBetweenLooks.count());
    interrupts_.poll(descriptors, grace_ ? grace_->poll_ms() : kBetweenLooks);
  }

  Lines::Take print(int rank, std::size_t stream) const {
    std::FILE* const to = stream == kStandardOutput ? stdout : stderr;
    return [=](std::string_view line) { tell_as_is(to, fmt::format("[{}] {}\n", rank, line)); };
  }

  void printed(int rank, std::size_t stream, std::string_view bytes) override {
    if (!options_.prefix) return tell_as_is(stream == kStandardOutput ? stdout : stderr, bytes);
    lines_.at(static_cast<std::size_t>(rank)).at(stream).add(bytes, print(rank, stream));
  }

  void finish(int rank) {
    for (std::size_t stream = 0; stream < kRankStreams; ++stream) {
      lines_.at(static_cast<std::size_t>(rank)).at(stream).finish(print(rank, stream));
    }
  }

  void ended(int rank, int wait_status) override {
    finish(rank);
    if (wait_status != 0) fail(rank, wait_status);
  }

  // What comes after the first failure is its consequence.
  void fail(int rank, int wait_status) {
    if (exit_code_ != 0) return;
    exit_code_ =
        WIFSIGNALED(wait_status) ? kSignalled + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
    tell_line(stderr, "tutti run: rank {}{} {}{}", rank, ranks_.place_of(rank),
              describe_end(wait_status), consequence());
    end_all(SIGTERM);
  }

  void lose(const Status& status) {
    const bool is_first = exit_code_ == 0;
    tell_line(stderr, "tutti run: {}{}", status.message(), is_first ? consequence() : "");
    if (!is_first) return;
    exit_code_ = kFailure;
    end_all(SIGTERM);
  }

  const char* consequence() const {
    return ranks_.running().empty() ? "" : "; the other ranks are ended";
  }

  void interrupt() {
    exit_code_ = kSignalled + interrupts_.received();
    end_all(interrupts_.received());
  }

  void end_all(int signal) {
    ranks_.signal(signal);
    grace_.emplace(options_.grace);
  }

  void kill_all() {
    if (killed_) return;
    killed_ = true;
    const std::vector<int> late = ranks_.running();
    if (late.empty()) return;
    ranks_.signal(SIGKILL);
    tell_line(stderr, "tutti run: {} did not end within {} s and {} killed", RankNames().of(late),
              options_.grace.count(), late.size() == 1 ? "is" : "are");
  }

  RankGroup& ranks_;
  const JobOptions& options_;
  const Interrupts& interrupts_;
  std::vector<std::array<Lines, kRankStreams>> lines_;
  std::optional<Deadline> grace_;
  bool killed_ = false;
  int exit_code_ = 0;
};

}  // namespace

int run_job(RankGroup& ranks, const JobOptions& options, const Interrupts& interrupts) {
  return Job(ranks, options, interrupts).run();
}

}  // namespace tutti::cli
