// A group that hangs, fails or is well, seen by the `tutti` command from outside: while it lasts,
// and in what is left of it.
#include <signal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <stdlib.h>
#include <thread>

#include "support/check.hpp"
#include "support/children.hpp"
#include "support/group.hpp"
#include "support/lane.hpp"
#include "support/patience.hpp"
#include "unit/cli/run_tutti.hpp"

namespace tutti::test {
namespace {

using cli::Ended;
using cli::run_tutti;
using nlohmann::json;
using std::chrono::milliseconds;
using ::testing::Contains;
using ::testing::HasSubstr;

using Clock = std::chrono::steady_clock;
constexpr int kRanks = 3, kVictim = 1;

// One folder for the whole process: settings are read once.
class TraceDirectory {
 public:
  TraceDirectory() {
    std::string pattern = testing::TempDir() + "tutti_status_XXXXXX";
    require(::mkdtemp(pattern.data()) != nullptr, "no folder");
    path_ = pattern;
    ::setenv("TUTTI_TRACE_DIR", path_.c_str(), 1);
  }
  ~TraceDirectory() { std::filesystem::remove_all(path_); }
  TraceDirectory(const TraceDirectory&) = delete;
  TraceDirectory& operator=(const TraceDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }
  void remove_page_of(int rank) const {
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      const std::string end = "-000" + std::to_string(rank) + ".page";
      if (entry.path().native().ends_with(end)) std::filesystem::remove(entry.path());
    }
  }

 private:
  std::string path_;
};

// Empty, and named in the environment before anything reads it.
const TraceDirectory& empty_directory() {
  static const TraceDirectory directory;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    std::filesystem::remove(entry.path());
  }
  return directory;
}

using Play = std::function<void(Rank& rank, Lane& lane, Wire& parent)>;

// A working operation, and then until every rank is done with it: what follows must not meet a rank
// that is still in this one. The ranks meet in another group, which is gone before this returns.
void work_once(Rank& rank, Lane& lane) {
  const auto meeting = take(rank.group.split(0, rank.number()));
  lane.expect_right({.count = 1000});
  (void)take(meeting->allocate(256));
}

// Three ranks that have done one operation and then play.
class Cast {
 public:
  explicit Cast(const Play& play)
      : id_(take(UniqueId::create())), children_(kRanks, [&](int number, Wire& parent) {
          const GroupSpec spec{
              .backend = Backend::kHost, .kind = RankKind::kProcesses, .ranks = kRanks};
          Communicator group = take(Communicator::create(id_, number, kRanks, options_for(spec)));
          const auto device = make_device(Backend::kHost, -1);
          Rank rank{group, *device, spec};
          Lane lane(rank, BufferKind::kSymmetric, 64 << 10);
          work_once(rank, lane);
          play(rank, lane, parent);
        }) {}

  Children& children() { return children_; }
  void wait_for(int rank, const char* line) {
    require(children_.wait_for_line(rank, line, kPatience), line);
  }
  void wait_for_survivors(const char* line) {
    for (const int rank : {0, 2}) wait_for(rank, line);
  }
  pid_t pid(int rank) const { return children_.all()[static_cast<std::size_t>(rank)].pid; }

  // This group as the command shows it; other groups of this user are none of our business.
  json look(double patience_s = 0.2) const {
    const Ended ended =
        run_tutti({"status", "--json", "--patience", fmt::format("{}", patience_s)});
    const json status = json::parse(ended.out);
    for (const json& group : status.at("groups")) {
      for (const json& member : group.at("members")) {
        const bool has_worked = !member.value("operation", json()).is_null();
        if (has_worked && member.at("pid") == pid(0)) return group;
      }
    }
    return nullptr;
  }
  // Once both others wait for the victim and for nobody else.
  json look_until_all_wait() const {
    const json victim_alone = json::array({kVictim});
    json group;
    for (const auto end = Clock::now() + kPatience; Clock::now() < end;) {
      group = look();
      const bool all = !group.is_null() &&
                       group.at("members").at(0).value("waits_for", json()) == victim_alone &&
                       group.at("members").at(2).value("waits_for", json()) == victim_alone &&
                       group.at("health") == "waiting";
      if (all) return group;
      std::this_thread::sleep_for(milliseconds(20));
    }
    fail("the others do not wait for the victim: " + group.dump());
  }

 private:
  UniqueId id_;
  Children children_;
};

std::string name_of(const json& group) { return group.at("group"); }

std::vector<int> culprits(const json& group) {
  std::vector<int> ranks;
  for (const json& culprit : group.at("culprits")) ranks.push_back(culprit.at("rank"));
  return ranks;
}

// Who is to blame in groups that the process alone is left of; empty where nobody is.
std::vector<int> look_until_alone(pid_t last) {
  for (const auto end = Clock::now() + kPatience; Clock::now() < end;) {
    const json status = json::parse(run_tutti({"status", "--json"}).out);
    for (const json& group : status.at("groups")) {
      std::size_t others = 0;
      bool is_here = false;
      for (const json& member : group.at("members")) {
        const bool is_last = member.value("pid", -1) == last;
        is_here = is_here || is_last;
        others += !is_last && member.at("state") != "absent" ? 1 : 0;
      }
      if (is_here && others == 0 && group.at("members").size() == kRanks) return culprits(group);
    }
    std::this_thread::sleep_for(milliseconds(20));
  }
  return {};
}

// The one group in the directory, and the exit code that goes with a failure.
json merged(const TraceDirectory& directory) {
  const Ended ended = run_tutti({"status", "--json", "--merge", directory.path()});
  EXPECT_EQ(ended.exit_code, 1) << ended.err;
  return json::parse(ended.out).at("groups").at(0);
}

std::atomic<bool> told = false;  // by SIGUSR1

// The victim never comes to the second operation; the others wait in it, until they are told that
// it has been long enough.
void stay_away(Rank& rank, Lane& lane, Wire& parent) {
  if (rank.number() == kVictim) {
    parent.say("ready");
    ::pause();
  }
  ::signal(SIGUSR1, [](int) { told = true; });
  const std::jthread deadline([&](const std::stop_token& over) {
    while (!told && !over.stop_requested()) std::this_thread::sleep_for(milliseconds(2));
    (void)rank.group.set_timeout(milliseconds(1));
  });
  parent.say(lane.run(lane.prepare({.count = 1000})).is_ok() ? "no failure" : "failed");
  ::pause();
}

TEST(StatusOfAGroup, ThatHangsOnAStoppedRankNamesIt) {
  const TraceDirectory& directory = empty_directory();
  Cast cast(stay_away);
  cast.wait_for(kVictim, "ready");
  cast.children().signal(kVictim, SIGSTOP);
  const json group = cast.look_until_all_wait();
  EXPECT_EQ(culprits(group), std::vector{kVictim});
  EXPECT_EQ(group.at("members").at(kVictim).at("process"), "stopped");
  EXPECT_EQ(group.at("members").at(0).at("operation").at("sequence"), 2);
  EXPECT_EQ(group.at("members").at(0).at("operation").at("state"), "running");

  const Ended ended = run_tutti({"status", "--patience", "0.1", "--group", name_of(group)});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.out, HasSubstr("waits for 1\n"));
  EXPECT_THAT(ended.out,
              HasSubstr(fmt::format("-> rank 1: its process ({}) is stopped", cast.pid(kVictim))));
  EXPECT_THAT(ended.out, HasSubstr("it has not begun #2"));

  for (const int rank : {0, 2}) cast.children().signal(rank, SIGUSR1);
  cast.wait_for_survivors("failed");  // at the deadline
  EXPECT_EQ(directory.files(), 3u);
  EXPECT_EQ(culprits(merged(directory)), std::vector{kVictim});
  EXPECT_EQ(merged(directory).at("members").at(0).at("failure").at("code"), "timeout");
  // Once the others are gone, and no folder keeps what they knew, it still is.
  for (const int rank : {0, 2}) cast.children().signal(rank, SIGKILL);
  EXPECT_EQ(look_until_alone(cast.pid(kVictim)), std::vector{kVictim});
  directory.remove_page_of(kVictim);  // as if it had never written
  EXPECT_EQ(culprits(merged(directory)), std::vector{kVictim});
}

TEST(StatusOfAGroup, OneOfWhichWasKilledNamesItAfterwards) {
  const TraceDirectory& directory = empty_directory();
  Cast cast(stay_away);
  cast.wait_for(kVictim, "ready");
  (void)cast.look_until_all_wait();
  cast.children().signal(kVictim, SIGKILL);
  cast.wait_for_survivors("failed");
  const json group = merged(directory);
  EXPECT_EQ(culprits(group), std::vector{kVictim});
  EXPECT_THAT(group.at("culprits").dump(), HasSubstr("has ended without a word"));
  // Its last words are there.
  EXPECT_EQ(group.at("members").at(kVictim).at("operation").at("sequence"), 1);
}

TEST(StatusOfAGroup, OneOfWhichRunsAnotherOperationNamesIt) {
  const TraceDirectory& directory = empty_directory();
  Cast cast([](Rank& rank, Lane& lane, Wire& parent) {
    const bool odd = rank.number() == kVictim;
    if (odd) std::this_thread::sleep_for(milliseconds(200));  // so that the others are in it
    const std::size_t count = odd ? 999 : 1000;
    parent.say(lane.run(lane.prepare({.count = count})).is_ok() ? "no failure" : "failed");
    ::pause();
  });
  for (int rank = 0; rank < kRanks; ++rank) cast.wait_for(rank, "failed");
  const json group = merged(directory);
  // Of two that differ neither is right: it takes the third, if it came before it was told.
  const auto in_second = [&](int rank) {
    return group.at("members").at(rank).at("operation").at("sequence") == 2;
  };
  EXPECT_THAT(culprits(group), Contains(kVictim));
  if (in_second(0) && in_second(2)) {
    EXPECT_EQ(culprits(group), std::vector{kVictim});
  }
  EXPECT_THAT(group.at("culprits").dump(), HasSubstr("#2 (999 x fp32, sum)"));
  EXPECT_THAT(group.at("culprits").dump(), HasSubstr("others run"));
}

// Negative control: nobody is blamed where nothing is wrong, busy or idle, and nothing is left.
TEST(StatusOfAGroup, ThatIsWellBlamesNobody) {
  const TraceDirectory& directory = empty_directory();
  Cast cast([](Rank&, Lane& lane, Wire& parent) {
    ::signal(SIGUSR1, [](int) { told = true; });
    parent.say("busy");
    for (int k = 0; k < 300; ++k) require_ok(lane.run(lane.prepare({.count = 1000})));
    parent.say("idle");
    while (!told) std::this_thread::sleep_for(milliseconds(2));
  });
  for (const char* moment : {"busy", "idle"}) {
    for (int rank = 0; rank < kRanks; ++rank) cast.wait_for(rank, moment);
    const json group = cast.look(300);
    EXPECT_EQ(group.at("health"), "healthy") << group.dump(1);
    EXPECT_TRUE(group.at("culprits").empty());
    EXPECT_EQ(run_tutti({"status", "--patience", "300", "--group", name_of(group)}).exit_code, 0);
  }
  EXPECT_EQ(directory.files(), 3u);
  for (int rank = 0; rank < kRanks; ++rank) cast.children().signal(rank, SIGUSR1);
  for (const auto& child : cast.children().finish(kPatience)) {
    EXPECT_TRUE(child.succeeded()) << child.describe_end();
  }
  EXPECT_EQ(directory.files(), 0u);
  const Ended ended = run_tutti({"status", "--merge", directory.path()});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.err, HasSubstr("holds no page"));
}

}  // namespace
}  // namespace tutti::test
