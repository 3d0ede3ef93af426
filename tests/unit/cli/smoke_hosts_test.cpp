// `tutti run --hosts`, with a script in place of ssh, which takes each host to be this one.
#include <signal.h>
#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "run_tutti.hpp"
#include "scratch_folder.hpp"
#include "sleepers.hpp"

namespace tutti::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

using Words = std::vector<std::string>;

class HostsCommand : public testing::Test {
 protected:
  // A login that greets, and whose far end is not ended by the end of this one.
  void SetUp() override {
    folder_.write("ssh",
                  "#!/bin/sh\n[ $1 = down ] && { echo no route >&2; exit 255; }\n"
                  "echo $$ > " +
                      folder_ / "pid_" +
                      "$1\necho welcome\nshift\nexec 3<&0\n"
                      "setsid sh -c \"$*\" <&3 3<&- &\nexec 3<&-\nwait $!\n");
    ::chmod((folder_ / "ssh").c_str(), 0700);
  }

  Ended on_hosts(const std::string& hosts, Words options, const Words& program,
                 const std::function<void(pid_t)>& meanwhile = {}) const {
    Words words = {"run", "--hosts", hosts, "--root", "127.0.0.1", "--ssh", folder_ / "ssh"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), program.begin(), program.end());
    return run_tutti(words, {"TUTTI_SECRET_FILE=/no/such/file"}, meanwhile);
  }
  Ended script_on(const std::string& hosts, const std::string& script) const {
    return on_hosts(hosts, {}, {"sh", "-c", script});
  }
  void kill_ssh_to(const std::string& host) const {
    std::ifstream in(folder_ / ("pid_" + host));
    pid_t pid = 0;
    ASSERT_TRUE(in >> pid);
    ::kill(pid, SIGKILL);
  }

  ScratchFolder folder_;
};

std::multiset<std::string> sorted_lines(const std::string& text) {
  std::multiset<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.insert(line);
  return lines;
}

TEST_F(HostsCommand, RanksOfTwoHostsReduceTogether) {
  const Ended ended = run_tutti({"bench", "all_reduce", "--hosts", "a:2,b:2", "--backend", "host",
                                 "--bytes", "1K", "-n", "3"},
                                {"TUTTI_SSH=" + folder_ / "ssh", "TUTTI_ROOT=127.0.0.1"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("all_reduce, 4 ranks"));
  EXPECT_THAT(ended.out, HasSubstr("Out of bounds values : 0 OK"));
}

TEST_F(HostsCommand, TellsRanksWhereTheyAre) {
  const Ended ended =
      on_hosts("a:1,u@b:2", {"--env", "GREETING=hi", "--folder", "/"},
               {"sh", "-c",
                "echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $PWD $GREETING; "
                "printf bad >&2"});
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_THAT(sorted_lines(ended.out),
              ElementsAre("[0] 0/3 0/1 / hi", "[1] 1/3 0/2 / hi", "[2] 2/3 1/2 / hi"));
  EXPECT_THAT(sorted_lines(ended.err), ElementsAre("[0] bad", "[1] bad", "[2] bad"));
}

// Of all processes that run meanwhile. The agent's words are there, so the secret would be found.
TEST_F(HostsCommand, NoCommandLineHoldsTheSecret) {
  const std::string secret = folder_ / "secret", all = folder_ / "all";
  const Ended ended =
      script_on("a,b", "[ $RANK = 1 ] && exit; printf %s \"$TUTTI_SECRET\" > " + secret +
                           "; cat /proc/[0-9]*/cmdline > " + all + " 2>/dev/null; true");
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(folder_.read("secret").size(), 64U);
  EXPECT_THAT(folder_.read("all"), HasSubstr("--agent"));
  EXPECT_THAT(folder_.read("all"), Not(HasSubstr(folder_.read("secret"))));
}

TEST_F(HostsCommand, Rank0ReadsStandardInput) {
  std::string text(300'000, 'x');  // more than pipes hold
  text += "\nend\n";
  folder_.write("input", text);
  const std::string command = "exec " TUTTI_COMMAND " run --no-prefix --hosts a,b --ssh " +
                              folder_ / "ssh" + " cat < " + folder_ / "input" + " > " +
                              folder_ / "output";
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(folder_.read("output"), text);
}

TEST_F(HostsCommand, TheFirstFailureEndsTheRanksOfAllHosts) {
  const Sleepers sleepers;
  const std::string started = folder_ / "started";
  const Ended ended = script_on("a:2,b", "if [ $RANK = 2 ]; then while [ ! -e " + started +
                                             " ]; do sleep 0.01; done; exit 7; "
                                             "fi; [ $RANK = 0 ] && touch " +
                                             started + "; " + sleepers.script());
  EXPECT_EQ(ended.exit_code, 7);
  EXPECT_EQ(ended.err, "tutti run: rank 2 on b ended with code 7; the other ranks are ended\n");
  EXPECT_TRUE(sleepers.are_gone_within(std::chrono::seconds(10)));
}

TEST_F(HostsCommand, AnInterruptEndsAllThatRanksStarted) {
  const Sleepers sleepers;
  const Ended ended = on_hosts("a,b:2", {}, {"sh", "-c", sleepers.script()}, [&](pid_t launcher) {
    sleepers.await(3);
    ::kill(launcher, SIGINT);
  });
  EXPECT_EQ(ended.exit_code, 128 + SIGINT);
  EXPECT_TRUE(sleepers.are_gone_within(std::chrono::seconds(10)));
}

TEST_F(HostsCommand, ALostConnectionEndsTheRanksOnBothSides) {
  const Sleepers sleepers;
  const Ended ended = on_hosts("a,b", {}, {"sh", "-c", sleepers.script()}, [&](pid_t) {
    sleepers.await(2);
    kill_ssh_to("b");
  });
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.err, StartsWith("tutti run: the connection to b was lost: " + folder_ / "ssh" +
                                    " ended by signal 9 (Killed); the other ranks are ended\n"));
  EXPECT_TRUE(sleepers.are_gone_within(std::chrono::seconds(10)));
}

TEST_F(HostsCommand, RanksEndWithTheLauncher) {
  const Sleepers sleepers;
  const Ended ended = on_hosts("a,b", {}, {"sh", "-c", sleepers.script()}, [&](pid_t launcher) {
    sleepers.await(2);
    ::kill(launcher, SIGKILL);
  });
  EXPECT_EQ(ended.exit_code, 128 + SIGKILL);
  EXPECT_TRUE(sleepers.are_gone_within(std::chrono::seconds(10)));
}

TEST_F(HostsCommand, KillsRanksThatDoNotEndWhenTold) {
  const std::string ready = folder_ / "ready";
  const Ended ended = on_hosts("a,b", {"--grace", "0"},
                               {"sh", "-c",
                                "if [ $RANK = 0 ]; then while [ ! -e " + ready +
                                    " ]; do sleep 0.01; done; exit 3; fi; "
                                    "trap '' TERM; touch " +
                                    ready + "; while :; do sleep 1; done"});
  EXPECT_EQ(ended.exit_code, 3);
  EXPECT_THAT(ended.err, HasSubstr("tutti run: rank 1 did not end within 0 s and is killed\n"));
}

TEST_F(HostsCommand, SaysWhichHostCannotStartRanksAndWhy) {
  const Ended unreachable = script_on("a,down", "true");
  EXPECT_EQ(unreachable.exit_code, 1);
  EXPECT_THAT(unreachable.err, HasSubstr("cannot start ranks on down: " + folder_ / "ssh" +
                                         " ended with code 255, and said: no route"));
  const Ended no_tutti = on_hosts("a", {"--remote-tutti", "/no/tutti"}, {"true"});
  EXPECT_EQ(no_tutti.exit_code, 1);
  EXPECT_THAT(no_tutti.err, HasSubstr("--remote-tutti gives the path of tutti there"));
  const Ended no_program = on_hosts("a", {}, {"no-such-program"});
  EXPECT_EQ(no_program.exit_code, 1);
  EXPECT_EQ(no_program.err, "tutti run: a: there is no program 'no-such-program' in PATH\n");
  EXPECT_THAT(on_hosts("a", {"--folder", "/no/folder"}, {"true"}).err,
              HasSubstr("tutti run: a: cannot run in the folder '/no/folder'"));
}

TEST_F(HostsCommand, RefusesWhatAnswersButIsNoAgent) {
  folder_.write("ssh",
                "#!/bin/sh\nprintf '\\ntutti agent 1\\n'; printf '\\377\\377\\377\\377'; cat\n");
  const Ended ended = script_on("a", "true");
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.err, StartsWith("tutti run: a: a frame claims 4294967295 bytes"));
}

}  // namespace
}  // namespace tutti::cli
