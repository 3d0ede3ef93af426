// `tutti run`, as a person calls it.
#include <signal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "run_tutti.hpp"
#include "scratch_folder.hpp"

namespace tutti::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Words = std::vector<std::string>;

Ended run_script(Words options, const std::string& script) {
  options.insert(options.begin(), "run");
  options.insert(options.end(), {"sh", "-c", script});
  return run_tutti(options);
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
  const ScratchFolder folder;
  const std::string pids = folder / "pids";
  const std::string script = "sleep 3600 & echo $! >> " + pids + "; wait";
  const auto started = [&] {
    std::ifstream in(pids);
    return std::vector<pid_t>(std::istream_iterator<pid_t>(in), {});
  };
  const Ended ended = run_tutti({"run", "-n", "2", "sh", "-c", script}, {}, [&](pid_t launcher) {
    while (started().size() < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ::kill(launcher, SIGINT);
  });
  EXPECT_EQ(ended.exit_code, 128 + SIGINT);
  // An orphan that has ended may stay until whoever took it over reaps it.
  const auto is_there = [](pid_t pid) {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string number, name, state;
    return (stat >> number >> name >> state) && state != "Z";
  };
  const std::vector<pid_t> sleeping = started();
  EXPECT_EQ(sleeping.size(), 2U);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (std::ranges::any_of(sleeping, is_there) && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(std::ranges::none_of(sleeping, is_there));
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
