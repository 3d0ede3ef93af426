#include "faults/scene.hpp"

#include <unistd.h>

#include <fmt/format.h>

#include <random>
#include <thread>
#include <vector>

#include "base/units.hpp"
#include "faults/stage.hpp"
#include "support/check.hpp"
#include "support/lane.hpp"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = Stage::Clock;

constexpr milliseconds kHesitation{1500};  // of whoever is to be late
constexpr milliseconds kSetUp{60000};      // of NCCL

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
                         .timeout = runs_on_nccl() ? kSetUp : scene_.deadline()};
    auto group = Communicator::create(id, number_, scene_.ranks, options_for(spec));
    if (!group.is_ok()) return parent_.say(to_line(group.status()));
    const auto device = make_device(scene_.backend, group->device());
    Rank rank{*group, *device, spec};
    parent_.say(to_line(run_until_failure(rank)));
  }

 private:
  bool is_victim() const { return number_ == scene_.victim; }
  bool runs_on_nccl() const { return scene_.algorithm == "nccl"; }
  bool is_late() const { return number_ == (scene_.victim + 1) % scene_.ranks; }

  Status run_until_failure(Rank& rank) {
    try {
      Lane lane(rank, BufferKind::kSymmetric, MiB);
      const std::size_t count = scene_.moment == Moment::kBusy ? 200000 : 1000;
      const Trial trial{.count = count, .algorithm = scene_.algorithm};
      Status status = lane.run(lane.prepare(trial));
      if (status.is_ok()) status = rank.group.set_timeout(scene_.deadline());
      if (status.is_ok()) parent_.say("made");
      if (status.is_ok()) before_second(rank);
      const auto end = Clock::now() + seconds(60);
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
        stage_(scene.ranks, [&](const UniqueId& id, int number, Wire& parent) {
          Player(scene, number, parent).play(id);
        }) {}

  std::string run() {
    Children& children = stage_.children();
    wait_for_the_moment();
    children.signal(scene_.victim, scene_.signal);
    stage_.mark();
    children.listen([&] { return all_others_are_done(); }, patience());
    for (int r = 0; r < scene_.ranks; ++r) {
      if (r != scene_.victim) judge(r);
    }
    end_victim();
    children.finish(seconds(30));
    for (int r = 0; r < scene_.ranks; ++r) {
      const auto& child = stage_.child(r);
      if (r != scene_.victim && !child.succeeded()) stage_.complain(r, child.describe_end());
    }
    stage_.expect_nothing_left();
    return stage_.complaints();
  }

 private:
  Clock::duration patience() const { return scene_.deadline() + kHesitation + seconds(30); }

  void wait_for_the_moment() {
    constexpr seconds kLimit{60};
    const auto random_ms = [&](unsigned most) { return milliseconds(random_() % most); };
    switch (scene_.moment) {
      case Moment::kDuringInit:
        std::this_thread::sleep_for(random_ms(40));
        return;
      case Moment::kBusy:
        stage_.children().wait_for_line(scene_.victim, "ready", kLimit);
        std::this_thread::sleep_for(random_ms(100));
        return;
      case Moment::kInside:
        stage_.children().wait_for_line(scene_.victim, "ready", kLimit);
        std::this_thread::sleep_for(milliseconds(200));  // now it is in the operation
        return;
      case Moment::kBeforeInit:
      case Moment::kBetween:
        stage_.children().wait_for_line(scene_.victim, "ready", kLimit);
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

  bool forms_still() const {
    return scene_.moment == Moment::kBeforeInit || scene_.moment == Moment::kDuringInit;
  }

  void judge(int rank) {
    const std::string* line = result_line(stage_.child(rank));
    if (line == nullptr) return stage_.complain(rank, "no result in time");
    const Ending result = from_line(*line);
    const bool killed = scene_.signal == SIGKILL;
    const bool noticed_end = result.code == StatusCode::kPeerFailed && killed;
    const bool ran_out = result.code == StatusCode::kTimeout && (!killed || forms_still());
    if (!noticed_end && !ran_out) return stage_.complain(rank, "unexpected:" + result.text);
    stage_.expect_within(rank, result, noticed_end ? kGoneLimit : scene_.deadline() + kHesitation);
    // A group that forms names who is missing; later also the operation and the wait.
    const bool in_operation = !forms_still() && result.code == StatusCode::kTimeout;
    stage_.expect_parts(rank, result,
                        in_operation ? parts_of_a_timeout(scene_.algorithm)
                                     : std::vector<std::string>{fmt::format("{}", scene_.victim)});
  }

  void end_victim() {
    if (scene_.signal != SIGSTOP) return;
    if (scene_.moment != Moment::kBeforeInit) {
      return stage_.expect_late_failure(scene_.victim, patience());
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
  const bool forms = moment == Moment::kBeforeInit || moment == Moment::kDuringInit;
  return signal == SIGSTOP || forms ? milliseconds(3000) : milliseconds(20000);
}

std::string play(const Scene& scene) { return Director(scene).run(); }

}  // namespace tutti::test
