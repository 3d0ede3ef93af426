// What every command refuses: values of each option that `--help` lists. A new command or option is
// tested as soon as it is there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "run_tutti.hpp"

namespace tutti::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;
using testing::UnorderedElementsAreArray;

using Words = std::vector<std::string>;

Words plus(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

void expect_one_line(const Ended& ended, const Words& words) {
  const std::string what = testing::PrintToString(words);
  EXPECT_EQ(ended.exit_code, 2) << what << ended.err;
  EXPECT_THAT(ended.out, IsEmpty()) << what;
  EXPECT_THAT(ended.err, StartsWith("tutti")) << what;
  EXPECT_EQ(std::ranges::count(ended.err, '\n'), 1) << what << ended.err;
  EXPECT_THAT(ended.err, Not(HasSubstr("\x1b"))) << what;
}

// The first group of each match in the help of a command.
std::set<std::string> listed(const Words& command, const char* pattern) {
  const std::string help = run_tutti(plus(command, {"--help"})).out;
  const std::regex line(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator at(help.begin(), help.end(), line), end; at != end; ++at) {
    found.insert((*at)[1].str());
  }
  return found;
}

// An option that has a value shows one blank, and of what type that is.
constexpr const char* kOptions = R"(\n  (?:-\w, |    )(--[\w-]+) \w)";

// What is called, and that without which it would be refused anyway.
const std::vector<Words> kCommands = {{"bench", "all_reduce"},
                                      {"bench", "overlap"},
                                      {"bench", "matmul"},
                                      {"bench", "put"},
                                      {"bench", "get"},
                                      {"tune"},
                                      {"explain", "all_reduce"},
                                      {"explain", "matmul"},
                                      {"explain", "all_gather_matmul"},
                                      {"status"},
                                      {"doctor"},
                                      {"env"},
                                      {"model", "all_reduce"},
                                      {"report"},
                                      {"run"},
                                      {"completion", "bash"},
                                      {"help"}};

TEST(Refusals, AreTestedOfEveryCommand) {
  std::set<std::string> known, of_bench;
  for (const Words& command : kCommands) {
    known.insert(command.front());
    if (command.front() == "bench") of_bench.insert(command.back());
  }
  const char* const pattern = R"(\n  ([a-z_]+)  +[A-Z])";
  EXPECT_THAT(listed({}, pattern), UnorderedElementsAreArray(known));
  EXPECT_GT(listed({"bench", "all_reduce"}, kOptions).size(), 20u);
  of_bench.erase("all_reduce");
  EXPECT_THAT(listed({"bench"}, pattern), UnorderedElementsAreArray(of_bench));
}

class Refusals : public testing::TestWithParam<Words> {
 protected:
  // "--ranks", each with a value.
  std::set<std::string> options() const { return listed(GetParam(), kOptions); }
  Ended run(const Words& more) const { return run_tutti(plus(GetParam(), more)); }
};

TEST_P(Refusals, OfAnEmptyValue) {
  for (const std::string& option : options()) {
    const Words words = {option, ""};
    const Ended ended = run(words);
    expect_one_line(ended, words);
    EXPECT_THAT(ended.err, HasSubstr(option + " has an empty value; leave it out"));
  }
}

// Neither a number, nor a name, nor what a terminal should see.
TEST_P(Refusals, OfNonsense) {
  const std::set<std::string> take_any = {"--docs", "--html", "--output", "--trace"};
  for (const std::string& option : options()) {
    if (take_any.contains(option)) continue;
    for (const char* value : {"99999999999999999999", "a\n\x1b[2J\r"}) {
      const Words words = {option, value};
      expect_one_line(run(words), words);
    }
  }
}

TEST_P(Refusals, OfWhatItDoesNotKnow) {
  for (const Words& words : {Words{"--quiet"}, Words{"--a\n\x1b[2J"}, Words{"a\n\x1b[2J", "b"}}) {
    const Ended ended = run(words);
    expect_one_line(ended, words);
  }
  EXPECT_THAT(run({"--quiet"}).err,
              AllOf(HasSubstr("unknown option '--quiet'; `tutti " + GetParam().front()),
                    HasSubstr("--help` lists the options")));
}

std::string name_of_command(const testing::TestParamInfo<Words>& info) {
  return info.param.front() + (info.param.size() > 1 ? "_" + info.param.back() : "");
}

INSTANTIATE_TEST_SUITE_P(OfEachCommand, Refusals, testing::ValuesIn(kCommands), name_of_command);

TEST(Refusals, QuoteWithoutControlCharacters) {
  const Ended ended = run_tutti({"bench", "all_reduce", "--dtype", "a\n\x1b[2J"});
  EXPECT_THAT(ended.err, HasSubstr("'a\\n\\x1b[2J'"));
  const Ended listing = run_tutti({"env"}, {"TUTTI_DEBUG_FILE=a\n\x1b[2J", "TUTTI_SIZE=b\x1b"});
  EXPECT_EQ(listing.exit_code, 0);
  EXPECT_THAT(listing.out, AllOf(HasSubstr(" a\\n\\x1b[2J "), Not(HasSubstr("\x1b"))));
  const Ended asked = run_tutti({"explain", "all_reduce", "--gpu", "a\n\x1b[2J"});
  EXPECT_EQ(asked.exit_code, 2);
  EXPECT_THAT(asked.err, AllOf(HasSubstr("a\\n\\x1b[2J"), Not(HasSubstr("\x1b"))));
}

TEST(Refusals, OfSizesThatOnlyTogetherAreTooLarge) {
  for (const Words& words :
       {Words{"bench", "all_reduce_residual_rms_norm", "--rows", "2147483647", "--hidden",
              "2147483647", "--dtype", "fp32"},
        Words{"bench", "reduce_scatter", "--split-rows", "--rows", "2147483647", "--hidden",
              "2147483646", "--dtype", "fp64"},
        Words{"tune", "all_reduce_residual_rms_norm", "--rows", "2147483647", "--hidden",
              "2147483647"},
        Words{"explain", "all_reduce", "--rows", "2147483647", "--hidden", "2147483647"},
        Words{"explain", "all_reduce", "--ranks", "2147483647"},
        Words{"explain", "all_reduce", "--bytes", "65T"}}) {
    expect_one_line(run_tutti(words), words);
  }
  const Ended ended = run_tutti(
      {"explain", "all_reduce", "--gpu", "NVIDIA H200", "--ranks", "1048576", "--bytes", "64T"});
  EXPECT_THAT(ended.out, HasSubstr("nccl"));
}

}  // namespace
}  // namespace tutti::cli
