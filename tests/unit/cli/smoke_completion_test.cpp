// The scripts of `tutti completion`, run by the shells that are installed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "run_tutti.hpp"
#include "scratch_folder.hpp"

namespace tutti::cli {
namespace {

using testing::HasSubstr;

// What `command` prints to both.
std::string output_of(const std::string& command) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(
      ::popen(("{ " + command + "; } 2>&1").c_str(), "r"), ::pclose);
  std::string text;
  for (int c = std::fgetc(pipe.get()); c != EOF; c = std::fgetc(pipe.get())) {
    text += static_cast<char>(c);
  }
  return text;
}

class Completion : public testing::Test {
 protected:
  void SetUp() override {
    for (const std::string shell : {"bash", "zsh", "fish"}) {
      folder_.write(shell, run_tutti({"completion", shell}).out);
    }
  }

  // What bash would offer for the last of `words`, which are quoted for it.
  std::string in_bash(const std::string& words) const {
    return output_of("bash -c 'source " + folder_ / "bash" + "; COMP_WORDS=(" + words +
                     "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _tutti; echo -n ${COMPREPLY[*]}'");
  }

  ScratchFolder folder_;
};

TEST_F(Completion, EachScriptParses) {
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    if (std::system(("command -v " + shell + " >/dev/null").c_str()) != 0) continue;
    EXPECT_EQ(output_of(shell + " -n " + folder_ / shell), "") << shell;
  }
}

TEST_F(Completion, OffersCommandsOptionsAndValues) {
  EXPECT_EQ(in_bash("tutti be"), "bench");
  EXPECT_EQ(in_bash("tutti bench all_r"), "all_reduce all_reduce_residual_rms_norm");
  EXPECT_EQ(in_bash("tutti bench overlap --da"), "");
  EXPECT_EQ(in_bash("tutti bench --dt"), "--dtype");
  EXPECT_EQ(in_bash("tutti bench all_reduce --dtype fp"), "fp64 fp32 fp16 fp8_e4m3 fp8_e5m2");
  EXPECT_EQ(in_bash("tutti bench --format = js"), "json");
  EXPECT_EQ(in_bash("tutti bench --algorithms one_shot,two_shot_st"), "one_shot,two_shot_staged");
  EXPECT_EQ(in_bash("tutti bench all_reduce --iterations \"\""), "");
  EXPECT_EQ(in_bash("tutti help expl"), "explain");
  EXPECT_EQ(in_bash("tutti completion \"\""), "bash zsh fish");
  EXPECT_EQ(in_bash("tutti run -n 2 --no"), "--no-bind --no-prefix");
  EXPECT_EQ(in_bash("tutti run --ho"), "--hosts");
  EXPECT_EQ(in_bash("tutti run --hosts a:2 --remote-t"), "--remote-tutti");
  EXPECT_EQ(in_bash("tutti bench put --ho"), "--hosts");
}

TEST_F(Completion, OffersFilesWhereTheyAreMeant) {
  folder_.write("table.json", "");
  EXPECT_EQ(in_bash("tutti tune --output " + folder_ / "tab"), folder_ / "table.json");
  EXPECT_EQ(in_bash("tutti run -n 2 cat " + folder_ / "tab"), folder_ / "table.json");
  EXPECT_EQ(in_bash("tutti report --results " + folder_ / "tab"), "");
}

}  // namespace
}  // namespace tutti::cli
