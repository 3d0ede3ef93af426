// `tutti run`, as a person calls it.
#include <signal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "run_tutti.hpp"
#include "scratch_folder.hpp"
#include "sleepers.hpp"

namespace tutti::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Words = std::vector<std::string>;

Ended run_script(Words options, const std::string& script,
                 const std::function<void(pid_t)>& meanwhile = {}) {
  options.insert(options.begin(), "run");
  options.insert(options.end(), {"sh", "-c", script});
  return run_tutti(options, {}, meanwhile);
}

std::multiset<std::string> lines_of(const std::string& text) {
  std::multiset<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.insert(line);
  return lines;
}

TEST(RunCommand, StartsRanksAndTellsTheirLinesApart) {
  const Ended ended = run_script(
      {"-n", "2"}, "echo rank $RANK of $WORLD_SIZE, $LOCAL_RANK here; printf end >&2; cat");
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_THAT(lines_of(ended.out),
              ElementsAre("[0] rank 0 of 2, 0 here", "[1] rank 1 of 2, 1 here"));
  EXPECT_THAT(lines_of(ended.err), ElementsAre("[0] end", "[1] end"));
}

TEST(RunCommand, LeavesOutputAsItIsWhereAsked) {
  const Ended ended = run_script({"-n", "2", "--no-prefix", "--no-bind"}, "echo same");
  EXPECT_EQ(ended.out, "same\nsame\n");
}

TEST(RunCommand, TheFirstFailureEndsTheOthersAndIsTheExitCode) {
  const Ended ended = run_script({"-n", "3"}, "[ $RANK = 1 ] && exit 7; sleep 3600 & wait");
  EXPECT_EQ(ended.exit_code, 7);
  EXPECT_EQ(ended.err, "tutti run: rank 1 ended with code 7; the other ranks are ended\n");
}

TEST(RunCommand, ARankThatASignalEndedCountsAsInShells) {
  const Ended ended = run_script({"-n", "2"}, "[ $RANK = 0 ] && kill -KILL $$; sleep 3600");
  EXPECT_EQ(ended.exit_code, 128 + SIGKILL);
  EXPECT_THAT(ended.err, HasSubstr("rank 0 ended by signal 9 (Killed); the other ranks are ended"));
}

TEST(RunCommand, KillsRanksThatDoNotEndWhenTold) {
  const Ended ended =
      run_script({"-n", "2", "--grace", "0"},
                 "[ $RANK = 1 ] && exit 3; trap '' TERM; while :; do sleep 1; done");
  EXPECT_EQ(ended.exit_code, 3);
  EXPECT_THAT(ended.err, HasSubstr("tutti run: rank 0 did not end within 0 s and is killed\n"));
}

TEST(RunCommand, AnInterruptEndsAllThatTheRanksStarted) {
  const Sleepers sleepers;
  const Ended ended =
      run_tutti({"run", "-n", "2", "sh", "-c", sleepers.script()}, {}, [&](pid_t launcher) {
        sleepers.await(2);
        ::kill(launcher, SIGINT);
      });
  EXPECT_EQ(ended.exit_code, 128 + SIGINT);
  EXPECT_EQ(sleepers.count(), 2U);
  EXPECT_TRUE(sleepers.are_gone_within(std::chrono::seconds(10)));
}

// Their output is always ready to be read.
TEST(RunCommand, AnInterruptEndsRanksThatNeverStopPrinting) {
  const ScratchFolder folder;
  const std::string started = folder / "started";
  const Ended ended = run_script({"-n", "2"}, "touch " + started + "; yes | head -c 200000000",
                                 [&](pid_t launcher) {
                                   while (!std::filesystem::exists(started))
                                     std::this_thread::yield();
                                   ::kill(launcher, SIGINT);
                                 });
  EXPECT_EQ(ended.exit_code, 128 + SIGINT);
}

TEST(RunCommand, ALaunchInsideAnotherHasRanksOfItsOwn) {
  const Ended ended = run_tutti(
      {"run", "-n", "2", TUTTI_COMMAND, "run", "-n", "2", "sh", "-c", "echo $RANK of $WORLD_SIZE"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(lines_of(ended.out),
              ElementsAre("[0] [0] 0 of 2", "[0] [1] 1 of 2", "[1] [0] 0 of 2", "[1] [1] 1 of 2"));
}

TEST(RunCommand, SaysWhatItCannotStart) {
  EXPECT_EQ(run_tutti({"run", "-n", "2", "no-such-program"}).err,
            "tutti run: there is no program 'no-such-program' in PATH; `tutti run --help` says "
            "more\n");
  EXPECT_EQ(run_tutti({"run", "true"}).err,
            "tutti run: how many ranks? Give -n N; `tutti run --help` says more\n");
}

}  // namespace
}  // namespace tutti::cli
