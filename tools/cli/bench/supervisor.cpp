#include "bench/supervisor.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "base/deadline.hpp"
#include "bench/interrupts.hpp"

namespace tutti::cli {
namespace {

struct Watched {
  RankProcess rank;
  FrameReader reader = {};
  bool done = false;    // it said so
  bool failed = false;  // told once
  bool ended = false;
};

class Supervisor {
 public:
  Supervisor(std::vector<RankProcess> ranks, const Patience& patience,
             const std::function<void(int, const Report&)>& on_report)
      : patience_(patience), on_report_(on_report), quiet_(patience.quiet) {
    for (RankProcess& rank : ranks) watched_.push_back({.rank = std::move(rank)});
  }

  Supervision run() {
    while (std::any_of(watched_.begin(), watched_.end(), [](auto& w) { return !w.ended; })) {
      wait();
      if (interrupts_.received() != 0 && result_.interrupted_by == 0) interrupt();
      for (std::size_t rank = 0; rank < watched_.size(); ++rank) look_at(static_cast<int>(rank));
      if (grace_ && grace_->passed()) {
        end_all("did not end after another rank failed; killed");
      } else if (!grace_ && quiet_.passed()) {
        end_all(fmt::format("nothing was heard from any rank for {} ms; killed",
                            patience_.quiet.count()));
      }
    }
    return std::move(result_);
  }

 private:
  void wait() {
    std::vector<pollfd> descriptors;
    bool closing = false;
    for (const Watched& w : watched_) {
      if (w.ended) continue;
      if (w.rank.reports.valid()) {
        descriptors.push_back({.fd = w.rank.reports.get(), .events = POLLIN, .revents = 0});
      } else {
        closing = true;  // its end is not announced by a descriptor: look again soon
      }
    }
    constexpr std::chrono::milliseconds kSoon{10};
    const Deadline& next = grace_ ? *grace_ : quiet_;
    interrupts_.poll(descriptors, next.poll_ms(closing ? kSoon : Deadline::kBetweenLooks));
  }

  void look_at(int rank) {
    Watched& w = watched_[static_cast<std::size_t>(rank)];
    if (w.ended) return;
    // Asked before the pipe is read: what was written before the end is then in the pipe.
    const auto end = w.rank.process.poll_end();
    if (w.rank.reports.valid()) {
      if (const Status status = w.reader.read_from(w.rank.reports.get()); !status.is_ok()) {
        fail(rank, status.to_string());
        w.rank.process.kill();
      }
      while (const auto frame = w.reader.next()) take(rank, *frame);
      if (w.reader.at_end()) w.rank.reports.reset();
    }
    if (end) finish(rank, *end);
  }

  void take(int rank, const std::string& frame) {
    quiet_ = Deadline(patience_.quiet);
    const auto report = report_from_json_text(frame);
    if (!report.is_ok()) return fail(rank, report.status().to_string());
    if (const auto* failure = std::get_if<Failure>(&*report)) return fail(rank, failure->text);
    if (std::holds_alternative<Done>(*report)) {
      watched_[static_cast<std::size_t>(rank)].done = true;
    } else {
      on_report_(rank, *report);
    }
  }

  void finish(int rank, int wait_status) {
    Watched& w = watched_[static_cast<std::size_t>(rank)];
    w.ended = true;
    if (wait_status != 0 || !w.done) {
      fail(rank, describe_end(wait_status) + (w.done ? "" : " before its work was done"));
    }
  }

  void fail(int rank, const std::string& text) {
    Watched& w = watched_[static_cast<std::size_t>(rank)];
    if (w.failed) return;
    w.failed = true;
    if (result_.interrupted_by == 0)
      result_.failures.push_back(fmt::format("rank {}: {}", rank, text));
    if (!grace_) grace_.emplace(patience_.grace);
  }

  void interrupt() {
    result_.interrupted_by = interrupts_.received();
    end_all("interrupted");
  }

  void end_all(const std::string& why) {
    for (std::size_t rank = 0; rank < watched_.size(); ++rank) {
      if (watched_[rank].ended) continue;
      fail(static_cast<int>(rank), why);
      watched_[rank].rank.process.kill();
    }
    grace_.emplace(patience_.grace);
  }

  const Patience patience_;
  const std::function<void(int, const Report&)>& on_report_;
  Interrupts interrupts_;
  std::vector<Watched> watched_;
  Deadline quiet_;
  std::optional<Deadline> grace_;
  Supervision result_;
};

}  // namespace

Supervision supervise(std::vector<RankProcess> ranks, const Patience& patience,
                      const std::function<void(int rank, const Report&)>& on_report) {
  return Supervisor(std::move(ranks), patience, on_report).run();
}

}  // namespace tutti::cli
