// What the command answers without measuring anything.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <sstream>

#include "run_tutti.hpp"
#include "scratch_folder.hpp"

namespace tutti::cli {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TEST(Command, SaysItsVersionAndHelp) {
  EXPECT_EQ(run_tutti({"--version"}).exit_code, 0);
  EXPECT_THAT(run_tutti({"--version"}).out, HasSubstr("tutti 0."));
  EXPECT_EQ(run_tutti({"bench", "--help"}).exit_code, 0);
  EXPECT_THAT(run_tutti({"bench", "--help"}).out, HasSubstr("--algorithms"));
}

TEST(Command, WithoutAnArgumentPrintsItsHelp) {
  const Ended ended = run_tutti({});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_EQ(ended.out, run_tutti({"--help"}).out);
  EXPECT_EQ(ended.out, run_tutti({"help"}).out);
  EXPECT_THAT(ended.err, IsEmpty());
}

class HelpPage : public testing::TestWithParam<std::vector<std::string>> {};

TEST_P(HelpPage, HasExamplesFits100ColumnsAndHasTwoNames) {
  std::vector<std::string> by_option = GetParam(), by_command = GetParam();
  by_option.emplace_back("--help");
  by_command.insert(by_command.begin(), "help");
  const Ended ended = run_tutti(by_option);
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_EQ(run_tutti(by_command).out, ended.out);
  EXPECT_THAT(ended.out, HasSubstr("\nExamples:\n  "));
  std::istringstream lines(ended.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << line;
}

INSTANTIATE_TEST_SUITE_P(
    Tutti, HelpPage,
    testing::Values(std::vector<std::string>{}, std::vector<std::string>{"bench"},
                    std::vector<std::string>{"bench", "overlap"},
                    std::vector<std::string>{"bench", "put"},
                    std::vector<std::string>{"bench", "get"}, std::vector<std::string>{"tune"},
                    std::vector<std::string>{"explain"}, std::vector<std::string>{"run"},
                    std::vector<std::string>{"status"}, std::vector<std::string>{"doctor"},
                    std::vector<std::string>{"env"}, std::vector<std::string>{"report"},
                    std::vector<std::string>{"completion"}, std::vector<std::string>{"help"}),
    [](const auto& tested) {
      std::string name = "tutti";
      for (const std::string& word : tested.param) name += "_" + word;
      return name;
    });

struct Mistyped {
  std::vector<std::string> words;
  std::string text;
};

TEST(Command, SaysWhatWasMeant) {
  const std::vector<Mistyped> mistyped = {
      {{"bnech"}, "tutti: unknown command 'bnech'; did you mean 'bench'? `tutti help` lists the"},
      {{"help", "bench", "putt"}, "tutti help: unknown command 'putt'; did you mean 'put'?"},
      {{"bench", "all_reduce", "--iters", "5"},
       "tutti bench: unknown option '--iters'; did you mean '--iterations'?"},
      {{"bench", "put", "--rank=2"},
       "tutti bench put: unknown option '--rank'; did you mean '--ranks'?"},
      {{"bench", "all_redcue"},
       "tutti bench: unknown collective 'all_redcue'; did you mean 'all_reduce'? Known are all_"},
      {{"explain", "all_gather", "--dtype", "bf61"},
       "tutti explain: unknown data type 'bf61'; did you mean 'bf16'? Known are fp64, "},
      {{"explain", "all_reduce", "--algorithm", "one_shto"},
       "tutti explain: unknown algorithm 'one_shto' for all_reduce; did you mean 'one_shot'?"},
      {{"bench"}, "tutti bench: collective is missing; known are all_reduce, "},
      {{"bench", "all_reduce", "--ranks"}, "tutti bench: --ranks needs a value: N[,...]; `tutti"},
      {{"env", "again"}, "tutti env: unexpected argument 'again'; `tutti env --help` shows how"},
      {{"bench", "overlap", "--m", "x"}, "tutti bench overlap: --m: 'x' is not a whole number"}};
  for (const Mistyped& each : mistyped) {
    const Ended ended = run_tutti(each.words);
    EXPECT_EQ(ended.exit_code, 2);
    EXPECT_THAT(ended.err, testing::StartsWith(each.text));
  }
}

TEST(Command, HelpHidesWhatIsForTests) {
  for (const char* command : {"bench", "tune"}) {
    EXPECT_THAT(run_tutti({command, "--help"}).out, Not(HasSubstr("inject")));
  }
}

class BadCommand : public testing::TestWithParam<std::vector<std::string>> {};

TEST_P(BadCommand, EndsWithCode2OneLineAndNothingRun) {
  const Ended ended = run_tutti(GetParam());
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.out, IsEmpty());
  EXPECT_THAT(ended.err, testing::StartsWith("tutti"));
  EXPECT_EQ(std::ranges::count(ended.err, '\n'), 1) << ended.err;
}

INSTANTIATE_TEST_SUITE_P(
    Tutti, BadCommand,
    testing::Values(std::vector<std::string>{"sing"}, std::vector<std::string>{"bench"},
                    std::vector<std::string>{"bench", "sing"},
                    std::vector<std::string>{"bench", "all_reduce", "--loud"},
                    std::vector<std::string>{"bench", "all_reduce", "--ranks"},
                    std::vector<std::string>{"bench", "all_reduce", "--ranks", "0"},
                    std::vector<std::string>{"bench", "all_reduce", "--algorithms", "tree"},
                    std::vector<std::string>{"bench", "all_reduce", "--dtype", "fp12"},
                    std::vector<std::string>{"bench", "all_reduce", "-b", "2K", "-e", "1K"},
                    std::vector<std::string>{"bench", "all_reduce", "-f", "1"},
                    std::vector<std::string>{"bench", "all_reduce", "--ranks", "999"},
                    std::vector<std::string>{"bench", "all_reduce", "--output", "/no/such/x.json"},
                    std::vector<std::string>{"tune", "all_sing"},
                    std::vector<std::string>{"tune", "--ranks", "0"},
                    std::vector<std::string>{"tune", "--algorithms", "auto"},
                    std::vector<std::string>{"tune", "--output", "/no/such/x.json"},
                    std::vector<std::string>{"explain", "all_reduce", "--bytes", "x"},
                    std::vector<std::string>{"status", "--merge", "/no/such/folder"},
                    std::vector<std::string>{"status", "--patience", "soon"},
                    std::vector<std::string>{"status", "--patience", "-1"},
                    std::vector<std::string>{"status", "--patience", "nan"},
                    std::vector<std::string>{"status", "--operations", "1025"},
                    std::vector<std::string>{"status", "--group", "not-a-group"}),
    [](const auto& tested) {
      std::string name = "tutti";
      for (const std::string& word : tested.param) name += "_" + word;
      std::ranges::replace_if(
          name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
      return name;
    });

TEST(Command, RefusesCudaWhereItSeesNoGpu) {
  const Ended ended =
      run_tutti({"bench", "all_reduce", "--backend", "cuda"}, {"CUDA_VISIBLE_DEVICES="});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.err, HasSubstr("there is no GPU here"));
}

TEST(Command, ExplainsAMachineThatIsNotHere) {
  const Ended ended = run_tutti(
      {"explain", "all_reduce", "--ranks", "8", "--bytes", "1M", "--gpu", "NVIDIA H200", "--json"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const auto json = nlohmann::json::parse(ended.out);
  EXPECT_THAT(json.at("plan").at("algorithm").get<std::string>(), HasSubstr("all_reduce/"));
  EXPECT_GE(json.at("candidates").size(), 3u);
}

TEST(Command, ExplainsWhatABudgetLeaves) {
  const auto explained = [](const char* collective) {
    return run_tutti({"explain", collective, "--ranks", "8", "--bytes", "1M", "--gpu",
                      "NVIDIA H200", "--sm-budget", "0"});
  };
  const Ended gathered = explained("all_gather");
  EXPECT_EQ(gathered.exit_code, 0) << gathered.err;
  EXPECT_THAT(gathered.out, HasSubstr("plan: all_gather/copy_engine"));
  const Ended reduced = explained("all_reduce");
  EXPECT_EQ(reduced.exit_code, 1);
  EXPECT_THAT(reduced.out, HasSubstr("no plan: no algorithm can run all_reduce"));
}

// Which on the host is nothing.
TEST(Command, MeasuresWithinABudget) {
  const Ended ended = run_tutti({"bench", "all_gather", "--backend", "host", "--ranks", "2",
                                 "--bytes", "1K", "-n", "3", "-w", "0", "--sm-budget", "0"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
}

TEST(Command, ExplainsWhatCannotRun) {
  const Ended ended =
      run_tutti({"explain", "all_reduce", "--backend", "host", "--algorithm", "nccl"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.out, HasSubstr("no plan"));
}

TEST(Command, SaysWhereItAnswersForTheHostAlone) {
  const std::string note = "There is no GPU here (";
  const std::vector<std::string> here = {"explain", "all_reduce", "--ranks", "2"};
  const Ended ended = run_tutti(here, {"CUDA_VISIBLE_DEVICES="});
  EXPECT_TRUE(ended.out.starts_with(note)) << ended.out;
  EXPECT_THAT(ended.out, HasSubstr("`tutti explain all_reduce --gpu h200 --ranks 8`"));
  for (const std::vector<std::string>& asked :
       {std::vector<std::string>{"--backend", "host"}, {"--gpu", "h200"}}) {
    std::vector<std::string> words = here;
    words.insert(words.end(), asked.begin(), asked.end());
    EXPECT_THAT(run_tutti(words).out, testing::Not(HasSubstr(note)));
  }
}

TEST(Command, ListsTheGpusThatItKnows) {
  const Ended ended = run_tutti({"explain", "--gpu", "list"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("NVIDIA H200            sm_90   132 SMs  18 NVLinks  shipped"));
  EXPECT_EQ(run_tutti({"explain"}).exit_code, 2);
}

TEST(Command, ExplainsOtherLayoutsOfNodes) {
  const auto explain = [](const char* layout) {
    return run_tutti({"explain", "all_reduce", "--gpu", "NVIDIA H200", "--ranks", "4"},
                     {std::string("TUTTI_TOPOLOGY=") + layout});
  };
  const Ended apart = explain("vnode:2");
  EXPECT_EQ(apart.exit_code, 0) << apart.err;
  EXPECT_THAT(apart.out,
              testing::AllOf(HasSubstr("2 nodes of 2 ranks"),
                             HasSubstr("needs access to the memory of all ranks, which are on 2")));
  EXPECT_EQ(explain("vnode:3").exit_code, 2);
  EXPECT_THAT(explain("rings").err, HasSubstr("known are system, nolocal, vnode:K"));
}

TEST(Command, ListsSettings) {
  const Ended ended = run_tutti({"env"}, {"TUTTI_TIMEOUT_MS=77"});
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_THAT(ended.out, testing::ContainsRegex("TUTTI_TIMEOUT_MS +77 ms .environment."));
}

int count_of(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

// Neither each rank that it starts, nor each rank that a launcher has started.
TEST(Command, WarnsOnceOfASettingThatIsNotKnown) {
  const std::vector<std::string> environment = {"TUTTI_TIMEOUT=3"};
  const std::string warning =
      "unknown setting TUTTI_TIMEOUT (environment) is ignored; did you mean";
  const Ended measured = run_tutti({"bench", "all_reduce", "--backend", "host", "--ranks", "1,2",
                                    "--bytes", "1K", "-n", "1", "-w", "0"},
                                   environment);
  EXPECT_EQ(count_of(measured.err, warning), 1) << measured.err;
  const Ended launched =
      run_tutti({"run", "-n", "3", TUTTI_COMMAND, "explain", "all_reduce"}, environment);
  EXPECT_EQ(count_of(launched.err, warning), 1) << launched.err;
  EXPECT_THAT(launched.err, testing::StartsWith("[0] "));
}

TEST(Command, DoctorsThisMachine) {
  const Ended ended = run_tutti({"doctor", "--json"});
  EXPECT_LE(ended.exit_code, 1);
  const auto json = nlohmann::json::parse(ended.out);
  bool failed = false;
  for (const auto& finding : json.at("findings")) failed |= finding.at("severity") == "fail";
  EXPECT_EQ(ended.exit_code, failed ? 1 : 0);
}

}  // namespace
}  // namespace tutti::cli
