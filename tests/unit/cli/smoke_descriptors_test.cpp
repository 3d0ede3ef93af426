// Commands whose standard descriptors are closed or full, as scripts and full disks make them.
#include <sys/wait.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ostream>
#include <string>

#include "scratch_folder.hpp"

namespace tutti::cli {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

// How every command is called in these tests, in a folder $D of its own.
struct CommandLine {
  const char* name;
  const char* words;
  const char* output = nullptr;  // the option that names a file to write
  const char* before = "true";   // a line of shell
};
void PrintTo(const CommandLine& line, std::ostream* out) { *out << line.words; }

constexpr const char* kReadme =
    "rm -rf $D/docs; mkdir -p $D/results/m; "
    R"(echo '{"schema": "tutti.bench/1", "tutti": "1", "environment": {"host": "h", "gpu": "", )"
    R"("gpus": 0, "driver": "", "cuda": "", "nccl": "", "multicast": false, "date": "", )"
    R"("command": ""}, "rows": []}' >$D/results/m/x.json; )"
    "printf '<!-- headline from x: -->\\n<!-- end of headline -->\\n' >$D/README.md";

constexpr CommandLine kLines[] = {
    {"bench", "bench all_reduce --backend host --bytes 1K -n 1 -w 0", "--output"},
    {"bench_trace", "bench all_reduce --backend host --bytes 1K -n 1 -w 0", "--trace"},
    {"bench_json", "bench all_reduce --backend host --bytes 1K -n 1 -w 0 --format json"},
    {"bench_put", "bench put --backend host --bytes 1K -n 1 -w 0", "--output"},
    {"bench_get", "bench get --backend host --bytes 1K -n 1 -w 0", "--output"},
    {"bench_overlap", "bench overlap --backend host --m 64 --n 64 --k 64 --ag-mb 1 -n 1 -w 0",
     "--output"},
    {"tune", "tune --backend host --ranks 2 --bytes 1K --seconds 1", "--output"},
    {"explain", "explain all_reduce"},
    {"explain_json", "explain all_reduce --json"},
    {"status", "status"},
    {"status_json", "status --json"},
    {"doctor", "doctor"},
    {"doctor_json", "doctor --json"},
    {"env", "env"},
    {"env_json", "env --json"},
    {"report", "report --results $D/results --docs $D/docs/x.md --readme $D/README.md", nullptr,
     kReadme},
    {"help", "--help"},
    {"version", "--version"},
};

class InShell : public testing::Test {
 protected:
  // Through a shell, which opens and closes descriptors as it is told. Whatever hangs is ended.
  int shell(const std::string& words, const std::string& before = "true") {
    const std::string line = "export D=" + folder_.path() +
                             " TUTTI_TUNING_CACHE=" + (folder_ / "table.json") + "; " + before +
                             "; timeout 120 " + TUTTI_COMMAND + " " + words;
    const int status = std::system(line.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string err() const { return folder_.read("err"); }

  ScratchFolder folder_;
};

class Descriptors : public InShell, public testing::WithParamInterface<CommandLine> {
 protected:
  int run(const std::string& redirections) {
    return shell(std::string(GetParam().words) + " " + redirections, GetParam().before);
  }
  // Of a machine with something wrong, doctor says so; and status, of groups of other tests.
  testing::Matcher<int> good() const {
    const std::string words = GetParam().words;
    const bool judges = words.starts_with("doctor") || words.starts_with("status");
    return judges ? testing::Matcher<int>(testing::Le(1)) : testing::Matcher<int>(0);
  }
};

TEST_P(Descriptors, WhatCannotBeWrittenIsToldInOneLine) {
  for (const char* out : {">&-", ">/dev/full"}) {
    EXPECT_EQ(run(std::string(out) + " 2>$D/err"), 1) << out;
    EXPECT_THAT(err(), AllOf(HasSubstr("tutti: cannot write to standard output: "), EndsWith("\n"),
                             Not(HasSubstr("terminate"))))
        << out;
  }
}

TEST_P(Descriptors, NobodyHasToListenToErrors) {
  for (const char* redirected : {"2>&-", "2>/dev/full"}) {
    EXPECT_THAT(run(std::string(redirected) + " >$D/out"), good()) << redirected;
    EXPECT_THAT(folder_.read("out"), Not(IsEmpty())) << redirected;
  }
}

TEST_P(Descriptors, NothingHasToBeOpen) {
  EXPECT_THAT(run("<&- >$D/out 2>$D/err"), good());
  EXPECT_EQ(run("<&- >&- 2>&-"), 1);
}

TEST_P(Descriptors, AnOutputThatIsFullOrAFolderIsAFailure) {
  if (GetParam().output == nullptr) return;
  const std::string output = std::string(" ") + GetParam().output;
  // What adds to a table reads it first.
  EXPECT_THAT(run(output + " /dev/full >/dev/null 2>$D/err"), AnyOf(1, 2));
  EXPECT_THAT(err(), AllOf(HasSubstr("tutti "), HasSubstr("'/dev/full'"), EndsWith("\n"),
                           Not(HasSubstr("terminate"))));
  EXPECT_EQ(run(output + " $D >$D/out 2>$D/err"), 2);
  EXPECT_THAT(err(), AllOf(StartsWith("tutti "), HasSubstr("it is a folder"), EndsWith("\n")));
  EXPECT_EQ(std::ranges::count(err(), '\n'), 1) << err();
  EXPECT_THAT(folder_.read("out"), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(OfEachCommand, Descriptors, testing::ValuesIn(kLines),
                         [](const auto& instance) { return std::string(instance.param.name); });

// Where a file is read, a folder or a FIFO is refused, and not waited for.
struct WrongFile {
  const char* line;  // with @ for the file
  int exit_code;
};

TEST_F(InShell, AFileThatIsNoneIsRefused) {
  const WrongFile wrongs[] = {
      {"TUTTI_TUNING_FILE=@ explain all_reduce --backend host", 1},
      {"TUTTI_TUNING_CACHE=@ explain all_reduce --backend host", 1},
      {"TUTTI_TUNING_FILE=@ bench all_reduce --backend host --bytes 1K -n 1 -w 0", 1},
      {"TUTTI_TUNING_CACHE=@ bench all_reduce --backend host --bytes 1K -n 1 -w 0", 1},
      {"X= report --results $D/results --docs $D/docs/x.md --readme @", 2},
      {"X= report --results /dev/null --docs $D/docs/x.md --readme $D/README.md", 2},
      {"X= status --merge /dev/null", 2},
  };
  for (const char* file : {"$D/folder", "$D/fifo"}) {
    for (const WrongFile& wrong : wrongs) {
      std::string line = wrong.line;
      if (const std::size_t at = line.find('@'); at != std::string::npos) line.replace(at, 1, file);
      const std::size_t words = line.find(' ');
      const std::string before = std::string(kReadme) +
                                 "; mkdir -p $D/folder; rm -f $D/fifo; mkfifo $D/fifo; export " +
                                 line.substr(0, words);
      EXPECT_EQ(shell(line.substr(words) + " >/dev/null 2>$D/err", before), wrong.exit_code)
          << line;
      EXPECT_THAT(err(), AllOf(HasSubstr("tutti"), EndsWith("\n"), Not(HasSubstr("terminate"))))
          << line;
    }
    const std::string before =
        "mkdir -p $D/folder; rm -f $D/fifo; mkfifo $D/fifo; export TUTTI_CONF_FILE=" +
        std::string(file);
    EXPECT_EQ(shell("env >$D/out", before), 0) << file;
    EXPECT_THAT(folder_.read("out"), HasSubstr("warning: cannot read '")) << file;
  }
}

TEST_F(InShell, NoSizeIsTooLargeToBeRefused) {
  for (const char* size : {"18446744073709551615", "9223372036854775807", "16777215T"}) {
    for (const char* option : {"bench all_reduce --bytes", "bench all_reduce -b",
                               "bench all_reduce -e", "bench put --bytes"}) {
      const std::string line = std::string(option) + " " + size + " --backend host";
      EXPECT_EQ(shell(line + " >/dev/null 2>$D/err"), 2) << line;
      EXPECT_THAT(err(), HasSubstr("at most 64T")) << line;
    }
  }
}

}  // namespace
}  // namespace tutti::cli
