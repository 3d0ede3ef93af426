// Ranks that crash, hang or talk nonsense, played by shell commands.
#include "bench/supervisor.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "support/patience.hpp"

namespace tutti::cli {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Patience kPatient{.quiet = test::kPatience, .grace = test::kPatience};

// `script` finds its pipe as $OUT.
RankProcess start(const std::string& script) {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  const Fd write(ends[1]);
  auto process =
      ChildProcess::start({.program = "/bin/bash",
                           .arguments = {"-c", script},
                           .environment = environment_with({fmt::format("OUT={}", ends[1])}),
                           .inherited = {ends[1]}});
  EXPECT_TRUE(process.is_ok());
  return {.process = std::move(*process), .reports = Fd(ends[0])};
}

// A command that sends one frame.
std::string send(const std::string& payload) {
  return fmt::format("printf '\\{:03o}\\000\\000\\000%s' '{}' >&$OUT\n", payload.size(), payload);
}

const std::string kDone = send(R"({"kind":"done"})");

struct Outcome {
  Supervision supervision;
  std::vector<int> reported;  // ranks, in order of arrival
};

Outcome watch(const std::vector<std::string>& scripts, const Patience& patience) {
  Outcome outcome;
  std::vector<RankProcess> ranks;
  for (const std::string& script : scripts) ranks.push_back(start(script));
  outcome.supervision = supervise(std::move(ranks), patience, [&](int rank, const Report&) {
    outcome.reported.push_back(rank);
  });
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child was left behind";
  EXPECT_EQ(errno, ECHILD);
  return outcome;
}

TEST(Supervisor, GathersReportsOfRanksThatEndWell) {
  const std::string skipped = send(R"({"kind":"skipped","algorithm":"a","why":"b"})");
  const Outcome outcome = watch({skipped + kDone, skipped + skipped + kDone}, kPatient);
  EXPECT_THAT(outcome.supervision.failures, IsEmpty());
  EXPECT_EQ(outcome.supervision.interrupted_by, 0);
  EXPECT_THAT(outcome.reported, testing::UnorderedElementsAre(0, 1, 1));
}

TEST(Supervisor, NamesARankThatCrashes) {
  const Outcome outcome = watch({kDone, "kill -SEGV $$"}, kPatient);
  EXPECT_THAT(outcome.supervision.failures,
              ElementsAre("rank 1: ended by signal 11 (Segmentation fault) before its work was "
                          "done"));
}

TEST(Supervisor, NamesARankThatEndsWithACode) {
  EXPECT_THAT(watch({"exit 3", kDone}, kPatient).supervision.failures,
              ElementsAre("rank 0: ended with code 3 before its work was done"));
}

TEST(Supervisor, NamesARankThatEndsWellWithoutBeingDone) {
  EXPECT_THAT(watch({"exit 0"}, kPatient).supervision.failures,
              ElementsAre("rank 0: ended with code 0 before its work was done"));
}

TEST(Supervisor, NamesARankThatCrashesWhenItsWorkIsDone) {
  EXPECT_THAT(watch({kDone + "kill -ABRT $$"}, kPatient).supervision.failures,
              ElementsAre("rank 0: ended by signal 6 (Aborted)"));
}

TEST(Supervisor, TellsTheRanksOwnWords) {
  const std::string failure = send(R"({"kind":"failure","code":4,"text":"timeout: late"})");
  EXPECT_THAT(watch({failure + "exit 1"}, kPatient).supervision.failures,
              ElementsAre("rank 0: timeout: late"));
}

TEST(Supervisor, KillsRanksThatDoNotEndAfterAFailure) {
  const Outcome outcome =
      watch({"exec sleep 3600", "exit 1"}, {.quiet = test::kPatience, .grace = milliseconds(200)});
  EXPECT_THAT(outcome.supervision.failures,
              ElementsAre("rank 1: ended with code 1 before its work was done",
                          "rank 0: did not end after another rank failed; killed"));
}

TEST(Supervisor, KillsAGroupFromWhichNothingIsHeard) {
  const Outcome outcome = watch({"exec sleep 3600", "exec sleep 3600"},
                                {.quiet = milliseconds(300), .grace = test::kPatience});
  EXPECT_THAT(outcome.supervision.failures,
              ElementsAre("rank 0: nothing was heard from any rank for 300 ms; killed",
                          "rank 1: nothing was heard from any rank for 300 ms; killed"));
}

TEST(Supervisor, WaitsForASlowGroupThatIsAlive) {
  const std::string alive = send(R"({"kind":"alive"})") + "sleep 0.5\n";
  EXPECT_THAT(watch({alive + alive + alive + alive + alive + kDone},
                    {.quiet = milliseconds(2000), .grace = milliseconds(100)})
                  .supervision.failures,
              IsEmpty());
}

TEST(Supervisor, KillsARankThatClosesItsPipeAndStays) {
  const Outcome outcome = watch({"eval \"exec $OUT>&-\"; exec sleep 3600"},
                                {.quiet = milliseconds(300), .grace = milliseconds(300)});
  ASSERT_EQ(outcome.supervision.failures.size(), 1u);
}

TEST(Supervisor, RefusesNonsense) {
  EXPECT_THAT(watch({send("noise") + kDone}, kPatient).supervision.failures,
              ElementsAre(HasSubstr("not a report")));
  EXPECT_THAT(watch({"printf '\\377\\377\\377\\377' >&$OUT; exec sleep 3600"}, kPatient)
                  .supervision.failures,
              ElementsAre(HasSubstr("a frame claims 4294967295 bytes")));
}

class Interrupted : public testing::TestWithParam<int> {};

TEST_P(Interrupted, EndsAllRanks) {
  std::atomic<bool> ended{false};
  ::signal(GetParam(), SIG_IGN);  // what comes before it is watched for
  std::thread sender([&] {
    for (; !ended; std::this_thread::sleep_for(milliseconds(50))) ::kill(::getpid(), GetParam());
  });
  const Outcome outcome = watch({"exec sleep 3600", "exec sleep 3600"}, kPatient);
  ended = true;
  sender.join();
  ::signal(GetParam(), SIG_DFL);
  EXPECT_EQ(outcome.supervision.interrupted_by, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Signals, Interrupted, testing::Values(SIGINT, SIGTERM),
                         [](const auto& parameter) {
                           return parameter.param == SIGINT ? std::string("int")
                                                            : std::string("term");
                         });

TEST(ChildProcess, ThatCannotBeExecutedSaysSo) {
  const auto child = ChildProcess::start(
      {.program = "/no/such/program", .arguments = {}, .environment = {}, .inherited = {}});
  EXPECT_EQ(child.status().message(), "cannot start '/no/such/program': No such file or directory");
}

TEST(ChildProcess, EndsWithItsObject) {
  pid_t pid = -1;
  {
    const auto child = ChildProcess::start(
        {.program = "/bin/sleep", .arguments = {"3600"}, .environment = {}, .inherited = {}});
    ASSERT_TRUE(child.is_ok());
    pid = child->pid();
    EXPECT_EQ(::kill(pid, 0), 0);
  }
  EXPECT_EQ(::kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

}  // namespace
}  // namespace tutti::cli
