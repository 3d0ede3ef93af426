#include "faults/scene.hpp"

#include <unistd.h>

#include <fmt/format.h>

#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "base/units.hpp"
#include "faults/stage.hpp"
#include "support/check.hpp"
#include "support/lane.hpp"
#include "support/patience.hpp"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;
using Clock = Stage::Clock;

// --- the ranks ---

class Player {
 public:
  Player(const Scene& scene, int number, Wire& parent)
      : scene_(scene), number_(number), parent_(parent) {}

  void play(const UniqueId& id) {
    if (is_victim() && scene_.moment == Moment::kBeforeInit) {
      parent_.say("ready");
      std::this_thread::sleep_for(kNever);
    }
    const GroupSpec spec{.backend = scene_.backend,
                         .kind = RankKind::kProcesses,
                         .ranks = scene_.ranks,
                         .timeout = scene_.deadline()};
    auto group = Communicator::create(id, number_, scene_.ranks, options_for(spec));
    if (!group.is_ok()) return parent_.say(to_line(group.status()));
    const auto device = make_device(scene_.backend, group->device());
    Rank rank{*group, *device, spec};
    std::optional<HurryAfterTheFate> hurry;
    if (!is_victim() && scene_.signal == SIGSTOP && !scene_.forms()) hurry.emplace(*group);
    parent_.say(to_line(run_until_failure(rank)));
  }

 private:
  bool is_victim() const { return number_ == scene_.victim; }
  bool is_late() const { return number_ == (scene_.victim + 1) % scene_.ranks; }

  Status run_until_failure(Rank& rank) {
    try {
      Lane lane(rank, BufferKind::kSymmetric, MiB);
      const std::size_t count = scene_.moment == Moment::kBusy ? 200000 : 1000;
      const Trial trial{.count = count, .algorithm = scene_.algorithm};
      Status status = lane.run(lane.prepare(trial));
      if (status.is_ok()) parent_.say("made");
      if (status.is_ok()) before_second(rank);
      const auto end = Clock::now() + kPatience;
      while (status.is_ok() && Clock::now() < end) {
        status = lane.run(lane.prepare(trial));
      }
      return status;
    } catch (const Failure& failure) {  // of making the lane
      const Status status = rank.group.status();
      return status.is_ok() ? Status(StatusCode::kInternal, failure.what()) : status;
    }
  }

  void before_second(Rank& rank) {
    if (scene_.moment == Moment::kInside && is_late()) {
      while (!fate_is_known() && rank.group.status().is_ok()) {
        std::this_thread::sleep_for(milliseconds(2));
      }
    }
    if (!is_victim()) return;
    parent_.say("ready");
    while (scene_.moment == Moment::kBetween && rank.group.status().is_ok()) {
      std::this_thread::sleep_for(milliseconds(2));
    }
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
        stage_(scene.ranks, [&](const UniqueId& id, int number, Wire& parent) {
          Player(scene, number, parent).play(id);
        }) {}

  std::string run() {
    Children& children = stage_.children();
    wait_for_the_moment();
    children.signal(scene_.victim, scene_.signal);
    stage_.mark();
    stage_.tell_of_the_fate(scene_.victim);
    children.listen([&] { return all_others_are_done(); }, kPatience);
    for (int r = 0; r < scene_.ranks; ++r) {
      if (r != scene_.victim) judge(r);
    }
    end_victim();
    children.finish(kPatience);
    for (int r = 0; r < scene_.ranks; ++r) {
      const auto& child = stage_.child(r);
      if (r != scene_.victim && !child.succeeded()) stage_.complain(r, child.describe_end());
    }
    stage_.expect_nothing_left();
    return stage_.complaints();
  }

 private:
  void wait_for_the_moment() {
    const auto random_ms = [&](unsigned most) { return milliseconds(random_() % most); };
    switch (scene_.moment) {
      case Moment::kDuringInit:
        std::this_thread::sleep_for(random_ms(40));
        return;
      case Moment::kBusy:
        stage_.children().wait_for_line(scene_.victim, "ready", kPatience);
        std::this_thread::sleep_for(random_ms(100));
        return;
      case Moment::kInside:
        stage_.children().wait_for_line(scene_.victim, "ready", kPatience);
        std::this_thread::sleep_for(milliseconds(100));  // now it is in the operation
        return;
      case Moment::kBeforeInit:
      case Moment::kBetween:
        stage_.children().wait_for_line(scene_.victim, "ready", kPatience);
        return;
    }
  }

  bool all_others_are_done() const {
    for (int r = 0; r < scene_.ranks; ++r) {
      const auto& child = stage_.child(r);
      if (r != scene_.victim && result_line(child) == nullptr && !child.ended) return false;
    }
    return true;
  }

  void judge(int rank) {
    const std::string* line = result_line(stage_.child(rank));
    if (line == nullptr) return stage_.complain(rank, "no result in time");
    const Ending result = from_line(*line);
    const bool killed = scene_.signal == SIGKILL;
    const bool noticed_end = result.code == StatusCode::kPeerFailed && killed;
    const bool ran_out = result.code == StatusCode::kTimeout && (!killed || scene_.forms());
    if (!noticed_end && !ran_out) return stage_.complain(rank, "unexpected:" + result.text);
    stage_.expect_within(rank, result,
                         noticed_end      ? kGoneLimit
                         : scene_.forms() ? scene_.deadline()
                                          : kShort);
    // A group that forms names who is missing; later also the operation and the wait.
    const bool in_operation = !scene_.forms() && result.code == StatusCode::kTimeout;
    stage_.expect_parts(rank, result,
                        in_operation ? parts_of_a_timeout(scene_.algorithm)
                                     : std::vector<std::string>{fmt::format("{}", scene_.victim)});
  }

  void end_victim() {
    if (scene_.signal != SIGSTOP) return;
    if (scene_.moment != Moment::kBeforeInit) {
      return stage_.expect_late_failure(scene_.victim, kPatience);
    }
    stage_.children().signal(scene_.victim, SIGCONT);
    stage_.children().signal(scene_.victim, SIGKILL);
  }

  const Scene& scene_;
  std::mt19937 random_;
  Stage stage_;
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
  return fmt::format("{} of rank {} of {} {}{}{}", signal == SIGKILL ? "SIGKILL" : "SIGSTOP",
                     victim, ranks, to_string(moment), algorithm.empty() ? "" : " of ", algorithm);
}

std::chrono::milliseconds Scene::deadline() const {
  if (moment == Moment::kBeforeInit) return milliseconds(500);
  return moment == Moment::kDuringInit ? milliseconds(2000) : milliseconds(kPatience);
}

std::string play(const Scene& scene) { return Director(scene).run(); }

}  // namespace tutti::test
