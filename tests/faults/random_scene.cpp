#include "faults/random_scene.hpp"

#include <unistd.h>

#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <memory>
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
#include "support/series.hpp"

namespace tutti::test {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = Ending::Clock;

constexpr int kOperations = 150;          // where nothing comes of it
constexpr milliseconds kGoneLimit{1000};  // to learn that a process has ended
constexpr milliseconds kOutlives{1300};   // how long a child outlives the victim
constexpr std::string_view kReason = "enough of this";

bool is_harmless(Fate fate) { return fate == Fate::kPaused || fate == Fate::kForks; }
// The victim's process is there, but does not come: only the deadline ends the wait for it.
bool stays_away(Fate fate) { return fate == Fate::kStopped || fate == Fate::kLeaves; }

// --- the ranks
// ------------------------------------------------------------------------------------

class RandomPlayer {
 public:
  RandomPlayer(const RandomScene& scene, int number, Wire& parent)
      : scene_(scene), number_(number), parent_(parent) {}

  void play(const UniqueId& id) {
    const GroupSpec spec{.backend = scene_.backend,
                         .kind = RankKind::kProcesses,
                         .ranks = scene_.ranks,
                         .timeout = scene_.deadline()};
    auto made = Communicator::create(id, number_, scene_.ranks, options_for(spec));
    if (!made.is_ok()) return parent_.say(to_line(made.status()));
    auto group = std::make_unique<Communicator>(std::move(made).value());
    const auto device = make_device(scene_.backend, group->device());
    std::jthread fate;
    const Status status = [&] {
      Rank rank{*group, *device, spec};
      return run(rank, fate);
    }();
    if (leaves_ && scene_.fate == Fate::kExits) {
      fate.join();
      static_cast<void>(group.release());  // nobody destroys it
      std::exit(kChildSucceeded);
    }
    if (leaves_) group.reset();
    if (leaves_) std::this_thread::sleep_for(2 * scene_.deadline());
    parent_.say(to_line(status));
  }

 private:
  bool is_victim() const { return number_ == scene_.victim; }

  Status run(Rank& rank, std::jthread& fate) {
    try {
      Lane symmetric(rank, BufferKind::kSymmetric, Series::kMostBytes);
      Lane plain(rank, BufferKind::kPlain, Series::kMostBytes);
      Series series(scene_.seed);
      const auto end = Clock::now() + seconds(60);
      Status status;
      for (int i = 0; status.is_ok() && Clock::now() < end; ++i) {
        if (leaves_ || (is_harmless(scene_.fate) && i == kOperations)) return status;
        const Trial trial = series.next();
        Lane& lane = series.plain() ? plain : symmetric;
        status = lane.run(lane.prepare(trial));
        if (status.is_ok()) lane.check(trial);
        if (i == 0 && is_victim())
          fate = std::jthread([this, &group = rank.group] { meet_fate(group); });
      }
      return status;
    } catch (const Failure& failure) {  // of making a lane, or of a result
      const Status status = rank.group.status();
      return status.is_ok() ? Status(StatusCode::kInternal, failure.what()) : status;
    }
  }

  // On a thread of its own. What the parent does to the victim starts with "now", too.
  void meet_fate(Communicator& group) {
    std::this_thread::sleep_for(scene_.after);
    parent_.say(fmt::format("now {}", Clock::now().time_since_epoch().count()));
    switch (scene_.fate) {
      case Fate::kExits:
      case Fate::kLeaves:
        leaves_ = true;
        return;
      case Fate::kAborts:
        return group.abort(kReason);
      case Fate::kForks:
        if (::fork() == 0) ::_exit(kChildSucceeded);
        return;
      case Fate::kForksAndDies:
        if (::fork() == 0) {
          std::this_thread::sleep_for(kOutlives);
          ::_exit(kChildSucceeded);
        }
        ::raise(SIGKILL);
        return;
      case Fate::kKilled:
      case Fate::kStopped:
      case Fate::kPaused:
        return;
    }
  }

  const RandomScene& scene_;
  int number_;
  Wire& parent_;
  std::atomic<bool> leaves_ = false;
};

// --- the parent
// -----------------------------------------------------------------------------------

class RandomDirector {
 public:
  explicit RandomDirector(const RandomScene& scene)
      : scene_(scene), id_(make_id(traces_)), children_(scene.ranks, [&](int number, Wire& parent) {
          RandomPlayer(scene, number, parent).play(id_);
        }) {}

  std::string run() {
    if (!children_.wait_for_line(scene_.victim, "now ", seconds(60))) return "   it never began\n";
    strike();
    children_.listen([&] { return all_have_ended(); }, scene_.deadline() + seconds(30));
    for (int r = 0; r < scene_.ranks; ++r) judge(r);
    if (scene_.fate == Fate::kStopped) end_victim();
    for (int r = 0; r < scene_.ranks; ++r) judge_process(r);
    if (scene_.fate == Fate::kForksAndDies) {
      std::this_thread::sleep_until(struck_at_ + kOutlives + milliseconds(300));
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

  const Children::Child& child(int rank) const {
    return children_.all()[static_cast<std::size_t>(rank)];
  }

  void complain(int rank, std::string_view what) {
    complaints_ += fmt::format("   rank {}: {}\n", rank, what);
  }

  void strike() {
    struck_at_ = Clock::now();
    if (scene_.fate == Fate::kKilled) children_.signal(scene_.victim, SIGKILL);
    if (scene_.fate == Fate::kStopped || scene_.fate == Fate::kPaused) {
      children_.signal(scene_.victim, SIGSTOP);
    }
    if (scene_.fate != Fate::kPaused) return;
    children_.listen([] { return false; }, scene_.pause);
    children_.signal(scene_.victim, SIGCONT);
  }

  // Whether the victim, too, has something to say at the end.
  bool ends_properly(int rank) const {
    return rank != scene_.victim || is_harmless(scene_.fate) || scene_.fate == Fate::kAborts;
  }

  bool all_have_ended() const {
    for (int r = 0; r < scene_.ranks; ++r) {
      if (ends_properly(r) && result_line(child(r)) == nullptr && !child(r).ended) return false;
    }
    return true;
  }

  StatusCode expected() const {
    if (is_harmless(scene_.fate)) return StatusCode::kOk;
    if (stays_away(scene_.fate)) return StatusCode::kTimeout;
    return scene_.fate == Fate::kAborts ? StatusCode::kAborted : StatusCode::kPeerFailed;
  }

  void judge(int rank) {
    if (!ends_properly(rank)) return;
    const std::string* const line = result_line(child(rank));
    if (line == nullptr) return complain(rank, "no result in time");
    const Ending ending = from_line(*line);
    if (ending.code != expected()) return complain(rank, "unexpected:" + ending.text);
    if (ending.code == StatusCode::kOk) return;
    judge_time(rank, ending);
    judge_text(rank, ending);
  }

  void judge_time(int rank, const Ending& ending) {
    const auto limit = ending.code == StatusCode::kTimeout ? scene_.deadline() : kGoneLimit;
    const auto took = std::chrono::duration_cast<milliseconds>(ending.at - struck_at_);
    if (took <= limit + slack()) return;
    complain(rank, fmt::format("{} ms to the error, {} ms are allowed:{}", took.count(),
                               limit.count(), ending.text));
  }

  void judge_text(int rank, const Ending& ending) {
    std::vector<std::string> wanted = {fmt::format("rank {}", scene_.victim)};
    if (ending.code == StatusCode::kAborted) wanted = {std::string(kReason)};
    if (ending.code == StatusCode::kTimeout) {
      wanted = {"all_reduce/", "#", "waited", "for rank", "expected flag", "seen"};
    }
    for (const std::string& part : wanted) {
      if (ending.text.find(part) != std::string::npos) continue;
      complain(rank, fmt::format("'{}' is missing in:{}", part, ending.text));
    }
  }

  // Who was stopped wakes up late, finds its group failed and says so.
  void end_victim() {
    children_.signal(scene_.victim, SIGCONT);
    children_.listen([&] { return result_line(child(scene_.victim)) != nullptr; },
                     scene_.deadline() + seconds(30));
    const std::string* const line = result_line(child(scene_.victim));
    if (line == nullptr) return complain(scene_.victim, "woke up and said nothing");
    if (from_line(*line).code == StatusCode::kOk) complain(scene_.victim, "saw no failure");
  }

  void judge_process(int rank) {
    children_.finish(seconds(30));
    const bool dies = scene_.fate == Fate::kKilled || scene_.fate == Fate::kForksAndDies;
    if (dies && rank == scene_.victim) return;
    if (!child(rank).succeeded()) complain(rank, child(rank).describe_end());
  }

  const RandomScene& scene_;
  Traces traces_;
  UniqueId id_;
  Children children_;
  Clock::time_point struck_at_;
  std::string complaints_;
};

}  // namespace

std::string_view to_string(Fate fate) {
  switch (fate) {
    case Fate::kKilled:
      return "is killed";
    case Fate::kStopped:
      return "is stopped";
    case Fate::kPaused:
      return "is paused";
    case Fate::kExits:
      return "exits without a word";
    case Fate::kLeaves:
      return "leaves the group";
    case Fate::kAborts:
      return "aborts";
    case Fate::kForks:
      return "forks";
    case Fate::kForksAndDies:
      break;
  }
  return "forks and dies";
}

std::string RandomScene::name() const {
  return fmt::format("campaign {}: rank {} of {} {} after {} us", seed, victim, ranks,
                     to_string(fate), after.count());
}

milliseconds RandomScene::deadline() const {
  if (fate == Fate::kPaused && pause >= milliseconds(1000)) return pause / 2;
  return stays_away(fate) ? milliseconds(1000) : milliseconds(20000);
}

RandomScene draw_scene(Backend backend, int ranks, unsigned seed) {
  std::mt19937 random(seed);
  RandomScene scene;
  scene.backend = backend;
  scene.seed = seed;
  scene.ranks = backend == Backend::kHost ? 2 + static_cast<int>(random() % 3) : ranks;
  scene.victim = static_cast<int>(random() % static_cast<unsigned>(scene.ranks));
  // Every fate in turn; forks of a process that uses a GPU are not CUDA's to survive.
  scene.fate = kAllFates[seed % (backend == Backend::kHost ? std::size(kAllFates) : 6)];
  scene.after = microseconds(random() % 20000);
  return scene;
}

std::string play(const RandomScene& scene) { return RandomDirector(scene).run(); }

}  // namespace tutti::test
