// Commands whose standard descriptors are closed or full, as scripts and full disks make them.
#include <sys/wait.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "scratch_folder.hpp"

namespace tutti::cli {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Through a shell, which opens and closes descriptors as it is told.
int exit_code_of(const std::string& arguments, const std::string& environment = {}) {
  const std::string line = environment + " " + TUTTI_COMMAND + " " + arguments;
  const int status = std::system(line.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class Descriptors : public testing::TestWithParam<const char*> {
 protected:
  int run(const std::string& redirections) {
    return exit_code_of(std::string(GetParam()) + " " + redirections,
                        "TUTTI_TUNING_CACHE=" + (folder_ / "table.json"));
  }

  ScratchFolder folder_;
};

TEST_P(Descriptors, WhatCannotBeWrittenIsToldInOneLine) {
  for (const char* out : {">&-", ">/dev/full"}) {
    EXPECT_EQ(run(std::string(out) + " 2>" + (folder_ / "err")), 1) << out;
    EXPECT_THAT(folder_.read("err"), AllOf(HasSubstr("tutti: cannot write to standard output: "),
                                           EndsWith("\n"), Not(HasSubstr("terminate"))))
        << out;
  }
}

TEST_P(Descriptors, NobodyHasToListenToErrors) {
  for (const char* err : {"2>&-", "2>/dev/full"}) {
    EXPECT_EQ(run(std::string(err) + " >" + (folder_ / "out")), 0) << err;
    EXPECT_THAT(folder_.read("out"), Not(IsEmpty())) << err;
  }
}

TEST_P(Descriptors, NothingHasToBeOpen) {
  EXPECT_EQ(run("<&- >" + (folder_ / "out") + " 2>" + (folder_ / "err")), 0);
  EXPECT_EQ(run("<&- >&- 2>&-"), 1);
}

INSTANTIATE_TEST_SUITE_P(
    OfEachCommand, Descriptors,
    testing::Values("bench all_reduce --backend host --bytes 1K -n 1 -w 0",
                    "bench all_reduce --backend host --bytes 1K -n 1 -w 0 --format json",
                    "bench put --backend host --bytes 1K -n 1 -w 0",
                    "bench overlap --backend host --m 64 --n 64 --k 64 --ag-mb 1 -n 1",
                    "tune --backend host --ranks 2 --bytes 1K --seconds 1", "env", "env --json",
                    "explain all_reduce", "status", "--version"),
    [](const auto& instance) { return std::to_string(instance.index); });

TEST(Sizes, NoNumberIsTooLargeToBeRefused) {
  const ScratchFolder folder;
  for (const char* size : {"18446744073709551615", "9223372036854775807", "16777215T"}) {
    for (const char* option : {"bench all_reduce --bytes", "bench all_reduce -b",
                               "bench all_reduce -e", "bench put --bytes"}) {
      const std::string line = std::string(option) + " " + size + " --backend host";
      EXPECT_EQ(exit_code_of(line + " >/dev/null 2>" + (folder / "err")), 2) << line;
      EXPECT_THAT(folder.read("err"), HasSubstr("at most 64T")) << line;
    }
  }
}

}  // namespace
}  // namespace tutti::cli
