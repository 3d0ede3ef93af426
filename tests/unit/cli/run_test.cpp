// Parts of `tutti run`.
#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sched.h>
#include <string>
#include <string_view>
#include <vector>

#include "run/arguments.hpp"
#include "run/cores.hpp"
#include "run/environment.hpp"
#include "run/lines.hpp"
#include "run/options.hpp"

namespace tutti::cli {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

using Words = std::vector<std::string>;

TEST(Run, TakesTheProgramAfterItsOwnOptions) {
  CLI::App run;
  RunArguments arguments;
  add_run_options(run, arguments);
  const auto split = [&](Words words) {
    const Words program = take_program(run, words);
    return std::pair(words, program);
  };
  EXPECT_EQ(split({"run", "-n", "2", "a", "-n", "3"}),
            std::pair(Words({"run", "-n", "2"}), Words({"a", "-n", "3"})));
  EXPECT_EQ(split({"run", "--no-bind", "-np", "2", "--", "-a", "--", "b"}),
            std::pair(Words({"run", "--no-bind", "-n", "2"}), Words({"-a", "--", "b"})));
  EXPECT_EQ(split({"run", "--ranks=2", "a"}), std::pair(Words({"run", "--ranks=2"}), Words({"a"})));
  EXPECT_EQ(split({"run", "-n"}), std::pair(Words({"run", "-n"}), Words()));
}

std::vector<int> listed(const cpu_set_t& cores) {
  std::vector<int> numbers;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &cores)) numbers.push_back(core);
  }
  return numbers;
}

TEST(Run, SharesCoresEqually) {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  for (const int core : {1, 2, 4, 7, 8}) CPU_SET(core, &usable);
  EXPECT_THAT(listed(*cores_of_rank(usable, 0, 2)), ElementsAre(1, 2));
  EXPECT_THAT(listed(*cores_of_rank(usable, 1, 2)), ElementsAre(4, 7, 8));
  EXPECT_THAT(listed(*cores_of_rank(usable, 4, 5)), ElementsAre(8));
  EXPECT_FALSE(cores_of_rank(usable, 0, 6).has_value());
}

TEST(Run, HandsOverWholeLines) {
  Lines lines;
  Words taken;
  const auto take = [&](std::string_view line) { taken.emplace_back(line); };
  lines.add("one\n\ntw", take);
  EXPECT_THAT(taken, ElementsAre("one", ""));
  lines.add("o\nrest", take);
  EXPECT_THAT(taken, ElementsAre("one", "", "two"));
  lines.finish(take);
  EXPECT_THAT(taken, ElementsAre("one", "", "two", "rest"));
  lines.finish(take);
  lines.add(std::string(Lines::kLongest, 'a'), take);
  EXPECT_EQ(taken.size(), 5U);
  EXPECT_EQ(taken.back().size(), Lines::kLongest);
}

TEST(Run, FindsAProgramAsAShellDoes) {
  EXPECT_EQ(*find_program("sh", "/no/such/folder:/bin:/usr/bin"), "/bin/sh");
  EXPECT_EQ(*find_program("/bin/sh", ""), "/bin/sh");
  EXPECT_EQ(find_program("no-such-program", "/bin").status().message(),
            "there is no program 'no-such-program' in PATH");
  EXPECT_EQ(find_program("/etc/passwd", "").status().message(),
            "cannot run '/etc/passwd': Permission denied");
}

TEST(Run, SetsWhatTorchrunSetsAndNothingOfAnotherLauncher) {
  ::setenv("TUTTI_RANK", "7", 1);
  ::setenv("TORCHELASTIC_RUN_ID", "before", 1);
  ::setenv("RANK", "9", 1);
  const Words environment = environment_of_rank(
      {.rank = 1, .ranks = 4, .local_rank = 1, .local_ranks = 4, .port = 12345});
  for (const char* const name : {"TUTTI_RANK", "TORCHELASTIC_RUN_ID", "RANK"}) ::unsetenv(name);
  for (const char* const setting : {"RANK=1", "WORLD_SIZE=4", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=4",
                                    "MASTER_ADDR=127.0.0.1", "MASTER_PORT=12345"}) {
    EXPECT_THAT(environment, Contains(setting).Times(1));
  }
  EXPECT_THAT(environment, Not(Contains(StartsWith("TUTTI_RANK="))));
  EXPECT_THAT(environment, Not(Contains(StartsWith("TORCHELASTIC_"))));
  EXPECT_THAT(environment, Not(Contains("RANK=9")));
}

}  // namespace
}  // namespace tutti::cli
