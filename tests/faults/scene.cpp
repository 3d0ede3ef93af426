#include "faults/scene.hpp"

#include <unistd.h>

#include <fmt/format.h>

#include <random>
#include <stdlib.h>
#include <thread>
#include <vector>

#include "base/units.hpp"
#include "faults/ending.hpp"
#include "faults/traces.hpp"
#include "support/check.hpp"
#include "support/children.hpp"
#include "support/lane.hpp"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;  // the same in every process of this host

constexpr milliseconds kHesitation{1500};  // of whoever is to be late
constexpr milliseconds kGoneLimit{1000};   // to learn that a process has ended

// --- the ranks ---

class Player {
 public:
  Player(const Scene& scene, int number, Wire& parent)
      : scene_(scene), number_(number), parent_(parent) {}

  void play(const UniqueId& id) {
    if (is_victim() && scene_.moment == Moment::kBeforeInit) {
      parent_.say("ready");
      std::this_thread::sleep_for(seconds(600));
    }
    const GroupSpec spec{.backend = scene_.backend,
                         .kind = RankKind::kProcesses,
                         .ranks = scene_.ranks,
                         .timeout = scene_.deadline()};
    auto group = Communicator::create(id, number_, scene_.ranks, options_for(spec));
    if (!group.is_ok()) return parent_.say(to_line(group.status()));
    const auto device = make_device(scene_.backend, group->device());
    Rank rank{*group, *device, spec};
    parent_.say(to_line(run_until_failure(rank)));
  }

 private:
  bool is_victim() const { return number_ == scene_.victim; }
  bool is_late() const { return number_ == (scene_.victim + 1) % scene_.ranks; }

  Status run_until_failure(Rank& rank) {
    try {
      Lane lane(rank, BufferKind::kSymmetric, MiB);
      const std::size_t count = scene_.moment == Moment::kBusy ? 200000 : 1000;
      Status status = lane.run(lane.prepare({.count = count}));
      if (status.is_ok()) parent_.say("made");
      if (status.is_ok()) before_second(rank);
      const auto end = Clock::now() + seconds(60);
      while (status.is_ok() && Clock::now() < end) {
        status = lane.run(lane.prepare({.count = count}));
      }
      return status;
    } catch (const Failure& failure) {  // of making the lane
      const Status status = rank.group.status();
      return status.is_ok() ? Status(StatusCode::kInternal, failure.what()) : status;
    }
  }

  void before_second(Rank& rank) {
    if (scene_.moment == Moment::kInside && is_late()) {
      const auto end = Clock::now() + kHesitation;
      while (Clock::now() < end && rank.group.status().is_ok()) {
        std::this_thread::sleep_for(milliseconds(2));
      }
    }
    if (!is_victim()) return;
    parent_.say("ready");
    if (scene_.moment == Moment::kBetween) std::this_thread::sleep_for(kHesitation);
  }

  const Scene& scene_;
  int number_;
  Wire& parent_;
};

// --- the parent ---

class Director {
 public:
  explicit Director(const Scene& scene)
      : scene_(scene),
        random_(scene.seed * 100 + static_cast<unsigned>(scene.victim)),
        id_(make_id(traces_)),
        children_(scene.ranks,
                  [&](int number, Wire& parent) { Player(scene, number, parent).play(id_); }) {}

  std::string run() {
    wait_for_the_moment();
    children_.signal(scene_.victim, scene_.signal);
    struck_at_ = Clock::now();
    children_.listen([&] { return all_others_are_done(); },
                     scene_.deadline() + kHesitation + seconds(30));
    for (int r = 0; r < scene_.ranks; ++r) {
      if (r != scene_.victim) judge(r);
    }
    end_victim();
    children_.finish(seconds(30));
    for (int r = 0; r < scene_.ranks; ++r) {
      const auto& child = children_.all()[static_cast<std::size_t>(r)];
      if (r != scene_.victim && !child.succeeded()) complain(r, child.describe_end());
    }
    const std::string left = traces_.left();
    if (!left.empty()) complaints_ += "   left behind: " + left + "\n";
    return complaints_;
  }

 private:
  static UniqueId make_id(const Traces& traces) {
    ::setenv("TUTTI_RUNTIME_DIR", traces.directory().c_str(), 1);
    return take(UniqueId::create());
  }

  void complain(int rank, std::string_view what) {
    complaints_ += fmt::format("   rank {}: {}\n", rank, what);
  }

  void wait_for_the_moment() {
    constexpr seconds kLimit{60};
    const auto random_ms = [&](unsigned most) { return milliseconds(random_() % most); };
    switch (scene_.moment) {
      case Moment::kDuringInit:
        std::this_thread::sleep_for(random_ms(40));
        return;
      case Moment::kBusy:
        children_.wait_for_line(scene_.victim, "ready", kLimit);
        std::this_thread::sleep_for(random_ms(100));
        return;
      case Moment::kInside:
        children_.wait_for_line(scene_.victim, "ready", kLimit);
        std::this_thread::sleep_for(milliseconds(200));  // now it is in the operation
        return;
      case Moment::kBeforeInit:
      case Moment::kBetween:
        children_.wait_for_line(scene_.victim, "ready", kLimit);
        return;
    }
  }

  bool all_others_are_done() const {
    for (int r = 0; r < scene_.ranks; ++r) {
      const auto& child = children_.all()[static_cast<std::size_t>(r)];
      if (r != scene_.victim && result_line(child) == nullptr && !child.ended) return false;
    }
    return true;
  }

  bool forms_still() const {
    return scene_.moment == Moment::kBeforeInit || scene_.moment == Moment::kDuringInit;
  }

  void judge(int rank) {
    const std::string* line = result_line(children_.all()[static_cast<std::size_t>(rank)]);
    if (line == nullptr) return complain(rank, "no result in time");
    const Ending result = from_line(*line);
    const bool killed = scene_.signal == SIGKILL;
    const bool noticed_end = result.code == StatusCode::kPeerFailed && killed;
    const bool ran_out = result.code == StatusCode::kTimeout && (!killed || forms_still());
    if (!noticed_end && !ran_out) return complain(rank, "unexpected:" + result.text);
    judge_time(rank, result, noticed_end);
    judge_text(rank, result);
  }

  void judge_time(int rank, const Ending& result, bool noticed_end) {
    const auto limit = noticed_end ? kGoneLimit : scene_.deadline() + kHesitation;
    const auto took = std::chrono::duration_cast<milliseconds>(result.at - struck_at_);
    if (took <= limit + slack()) return;
    complain(rank, fmt::format("{} ms to the error, {} ms are allowed:{}", took.count(),
                               limit.count(), result.text));
  }

  // A group that forms names who is missing; later also the operation and the wait.
  void judge_text(int rank, const Ending& result) {
    std::vector<std::string> wanted = {fmt::format("{}", scene_.victim)};
    const bool in_operation = !forms_still() && result.code == StatusCode::kTimeout;
    if (in_operation) {
      wanted = {"all_reduce/", "#", "waited", "for rank", "expected flag", "seen"};
    }
    for (const std::string& part : wanted) {
      if (result.text.find(part) == std::string::npos) {
        complain(rank, fmt::format("'{}' is missing in:{}", part, result.text));
      }
    }
  }

  // Who was only stopped wakes up late, finds its group failed and says so.
  void end_victim() {
    if (scene_.signal != SIGSTOP) return;
    children_.signal(scene_.victim, SIGCONT);
    if (scene_.moment == Moment::kBeforeInit) {
      children_.signal(scene_.victim, SIGKILL);
      return;
    }
    const auto& victim = children_.all()[static_cast<std::size_t>(scene_.victim)];
    children_.listen([&] { return result_line(victim) != nullptr; },
                     scene_.deadline() + kHesitation + seconds(30));
    const std::string* line = result_line(victim);
    if (line == nullptr) return complain(scene_.victim, "woke up and said nothing");
    if (from_line(*line).code == StatusCode::kOk) {
      complain(scene_.victim, "woke up late and saw no failure");
    }
  }

  const Scene& scene_;
  std::mt19937 random_;
  Traces traces_;
  UniqueId id_;
  Children children_;
  Clock::time_point struck_at_;
  std::string complaints_;
};

}  // namespace

std::string_view to_string(Moment moment) {
  switch (moment) {
    case Moment::kBeforeInit:
      return "before it joins";
    case Moment::kDuringInit:
      return "while the group forms";
    case Moment::kInside:
      return "inside an operation";
    case Moment::kBetween:
      return "between two operations";
    case Moment::kBusy:
      break;
  }
  return "under load";
}

std::string Scene::name() const {
  return fmt::format("{} of rank {} of {} {}", signal == SIGKILL ? "SIGKILL" : "SIGSTOP", victim,
                     ranks, to_string(moment));
}

std::chrono::milliseconds Scene::deadline() const {
  const bool forms = moment == Moment::kBeforeInit || moment == Moment::kDuringInit;
  return signal == SIGSTOP || forms ? milliseconds(3000) : milliseconds(20000);
}

std::string play(const Scene& scene) { return Director(scene).run(); }

}  // namespace tutti::test
