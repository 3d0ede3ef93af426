#include "faults/random_scene.hpp"

#include <unistd.h>

#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "base/units.hpp"
#include "faults/stage.hpp"
#include "support/check.hpp"
#include "support/lane.hpp"
#include "support/patience.hpp"
#include "support/series.hpp"

namespace tutti::test {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using Clock = Ending::Clock;

constexpr int kOperations = 150;  // where nothing comes of it
constexpr std::string_view kReason = "enough of this";
constexpr std::string_view kChild = "child ";  // the line that names it

bool has_ended(pid_t process) {
  std::ifstream stat(fmt::format("/proc/{}/stat", process));
  std::string text;
  return !std::getline(stat, text) || text.find(") Z") != std::string::npos;
}

bool is_harmless(Fate fate) { return fate == Fate::kPaused || fate == Fate::kForks; }
// The victim's process is there, but does not come: only the deadline ends the wait for it.
bool stays_away(Fate fate) { return fate == Fate::kStopped; }

// The other ranks run out of time: their deadline is shortened once the victim has met its fate.
bool is_given_up(const RandomScene& scene) { return stays_away(scene.fate) || scene.too_long; }

// --- the ranks ---

class RandomPlayer {
 public:
  RandomPlayer(const RandomScene& scene, int number, Wire& parent)
      : scene_(scene), number_(number), parent_(parent) {}

  void play(const UniqueId& id) {
    const GroupSpec spec{.backend = scene_.backend,
                         .kind = RankKind::kProcesses,
                         .ranks = scene_.ranks,
                         .timeout = kPatience};
    auto made = Communicator::create(id, number_, scene_.ranks, options_for(spec));
    if (!made.is_ok()) return parent_.say(to_line(made.status()));
    auto group = std::make_unique<Communicator>(std::move(made).value());
    const auto device = make_device(scene_.backend, group->device());
    std::jthread fate;
    const Status status = [&] {
      Rank rank{*group, *device, spec};
      std::optional<HurryAfterTheFate> hurry;
      if (!is_victim() && is_given_up(scene_)) hurry.emplace(*group);
      return run(rank, fate);
    }();
    if (leaves_ && scene_.fate == Fate::kExits) {
      fate.join();
      static Communicator* left = nullptr;  // where LeakSanitizer finds it
      left = group.release();               // nobody destroys it
      static_cast<void>(left);
      std::exit(kChildSucceeded);
    }
    if (leaves_) group.reset();
    while (leaves_ && !fate_is_known()) std::this_thread::sleep_for(milliseconds(2));
    parent_.say(to_line(status));
  }

 private:
  bool is_victim() const { return number_ == scene_.victim; }

  Status run(Rank& rank, std::jthread& fate) {
    try {
      Lane symmetric(rank, BufferKind::kSymmetric, Series::kMostBytes);
      Lane plain(rank, BufferKind::kPlain, Series::kMostBytes);
      Series series(scene_.seed);
      const auto end = Clock::now() + kPatience;
      Status status;
      for (int i = 0; status.is_ok() && Clock::now() < end; ++i) {
        if (leaves_ || (is_harmless(scene_.fate) && i == kOperations)) return status;
        if (i == kOperations / 2) await_pause();
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

  // Keeps the series from ending before the parent, on a busy machine, has stopped the victim.
  void await_pause() {
    if (!is_victim() || scene_.fate != Fate::kPaused) return;
    const auto end = Clock::now() + kPatience;
    while (!fate_is_known() && Clock::now() < end) std::this_thread::sleep_for(milliseconds(1));
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
        return fork_and_die();
      case Fate::kKilled:
      case Fate::kStopped:
      case Fate::kPaused:
        return;
    }
  }

  // Whoever judges ends the child.
  void fork_and_die() {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(static_cast<unsigned>(std::chrono::seconds(4 * kPatience).count()));
      for (;;) ::pause();
    }
    parent_.say(fmt::format("{}{}", kChild, child));
    ::raise(SIGKILL);
  }

  const RandomScene& scene_;
  int number_;
  Wire& parent_;
  std::atomic<bool> leaves_ = false;
};

// --- the parent ---

class RandomDirector {
 public:
  explicit RandomDirector(const RandomScene& scene)
      : scene_(scene), stage_(scene.ranks, [&](const UniqueId& id, int number, Wire& parent) {
          RandomPlayer(scene, number, parent).play(id);
        }) {}

  std::string run() {
    Children& children = stage_.children();
    if (!children.wait_for_line(scene_.victim, "now ", kPatience)) return "   it never began\n";
    strike();
    children.listen([&] { return all_have_ended(); }, kPatience);
    for (int r = 0; r < scene_.ranks; ++r) judge(r);
    if (scene_.fate == Fate::kStopped) stage_.expect_late_failure(scene_.victim, kPatience);
    const bool lives_on = scene_.fate == Fate::kLeaves && !stage_.child(scene_.victim).ended;
    if (lives_on) children.signal(scene_.victim, SIGUSR1);
    children.finish(kPatience);
    for (int r = 0; r < scene_.ranks; ++r) judge_process(r);
    if (scene_.fate == Fate::kForksAndDies) end_orphan();
    stage_.expect_nothing_left();
    return stage_.complaints();
  }

 private:
  // It has lived through all that, with copies of all descriptors.
  void end_orphan() {
    for (const std::string& line : stage_.child(scene_.victim).lines) {
      if (!line.starts_with(kChild)) continue;
      const pid_t orphan = std::stoi(line.substr(kChild.size()));
      if (has_ended(orphan)) stage_.complain(scene_.victim, "its child did not outlive it");
      ::kill(orphan, SIGKILL);
      for (const auto end = Clock::now() + kPatience; Clock::now() < end && !has_ended(orphan);) {
        std::this_thread::sleep_for(milliseconds(1));
      }
    }
  }

  void strike() {
    Children& children = stage_.children();
    stage_.mark();
    if (scene_.fate == Fate::kKilled) children.signal(scene_.victim, SIGKILL);
    if (scene_.fate == Fate::kStopped || scene_.fate == Fate::kPaused) {
      children.signal(scene_.victim, SIGSTOP);
    }
    if (is_given_up(scene_)) stage_.tell_of_the_fate(scene_.victim);
    if (scene_.fate != Fate::kPaused) return;
    children.signal(scene_.victim, SIGUSR1);  // which it gets when it goes on
    children.listen([&] { return scene_.too_long && somebody_has_ended(); },
                    scene_.too_long ? kPatience : scene_.pause);
    children.signal(scene_.victim, SIGCONT);
  }

  bool somebody_has_ended() const {
    for (int r = 0; r < scene_.ranks; ++r) {
      if (result_line(stage_.child(r)) != nullptr || stage_.child(r).ended) return true;
    }
    return false;
  }

  // Whether the victim, too, has something to say at the end.
  bool ends_properly(int rank) const {
    return rank != scene_.victim || is_harmless(scene_.fate) || scene_.fate == Fate::kAborts;
  }

  bool all_have_ended() const {
    for (int r = 0; r < scene_.ranks; ++r) {
      const auto& child = stage_.child(r);
      if (ends_properly(r) && result_line(child) == nullptr && !child.ended) return false;
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
    const std::string* const line = result_line(stage_.child(rank));
    if (line == nullptr) return stage_.complain(rank, "no result in time");
    const Ending ending = from_line(*line);
    if (ending.code != expected()) return stage_.complain(rank, "unexpected:" + ending.text);
    if (ending.code == StatusCode::kOk) return;
    const bool ran_out = ending.code == StatusCode::kTimeout;
    stage_.expect_within(rank, ending, ran_out ? kShort : kGoneLimit);
    std::vector<std::string> parts = {fmt::format("rank {}", scene_.victim)};
    if (ending.code == StatusCode::kAborted) parts = {std::string(kReason)};
    stage_.expect_parts(rank, ending, ran_out ? parts_of_a_timeout() : parts);
  }

  void judge_process(int rank) {
    const bool dies = scene_.fate == Fate::kKilled || scene_.fate == Fate::kForksAndDies;
    if (dies && rank == scene_.victim) return;
    const auto& child = stage_.child(rank);
    if (!child.succeeded()) stage_.complain(rank, child.describe_end());
  }

  const RandomScene& scene_;
  Stage stage_;
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
