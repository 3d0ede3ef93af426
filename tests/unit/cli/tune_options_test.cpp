#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "machines.hpp"
#include "scratch_folder.hpp"
#include "tune/arguments.hpp"
#include "tune/forecast.hpp"
#include "tune/options.hpp"

namespace tutti::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<TuneOptions> parse(std::vector<std::string> words, const BenchMachine& machine,
                          const std::string& table) {
  CLI::App app;
  TuneArguments arguments;
  add_tune_options(app, arguments);
  std::reverse(words.begin(), words.end());  // as CLI11 takes a vector
  app.parse(words);
  return check_tune_arguments(arguments, machine, table);
}

class TuneOptionsTest : public testing::Test {
 protected:
  Result<TuneOptions> parse(const std::vector<std::string>& words, const BenchMachine& machine) {
    return cli::parse(words, machine, folder_ / "cache/tutti/tuning.json");
  }
  void expect_refused(const std::vector<std::string>& words, const std::string& text) {
    EXPECT_THAT(parse(words, kHostOnly).status().message(), HasSubstr(text));
  }
  ScratchFolder folder_;
};

TEST_F(TuneOptionsTest, AllGpusByDefault) {
  const auto options = parse({}, kEightGpus);
  ASSERT_TRUE(options.is_ok()) << options.status().to_string();
  EXPECT_THAT(options->bench.ranks, ElementsAre(2, 3, 4, 5, 6, 7, 8));
  EXPECT_EQ(options->bench.mode, Mode::kGraph);
  EXPECT_EQ(options->bench.wanted_buffers(), BufferKind::kSymmetric);
  EXPECT_THAT(options->bench.algorithms, testing::Contains("nccl"));
}

TEST_F(TuneOptionsTest, TwoRanksOnTheHost) {
  EXPECT_THAT(parse({}, kHostOnly)->bench.ranks, ElementsAre(2));
  EXPECT_THAT(parse({"--backend", "host"}, kEightGpus)->bench.ranks, ElementsAre(2));
}

TEST_F(TuneOptionsTest, AnyCollectiveWithSizes) {
  EXPECT_EQ(parse({}, kEightGpus)->bench.collective, Collective::kAllReduce);
  const auto gather = parse({"all_gather"}, kEightGpus);
  ASSERT_TRUE(gather.is_ok()) << gather.status().to_string();
  EXPECT_EQ(gather->bench.collective, Collective::kAllGather);
  EXPECT_THAT(gather->bench.algorithms, testing::Contains("copy_engine"));
  const auto norm =
      parse({"all_reduce_residual_rms_norm", "--rows", "1,32", "--hidden", "1024"}, kEightGpus);
  ASSERT_TRUE(norm.is_ok()) << norm.status().to_string();
  EXPECT_THAT(norm->bench.bytes, ElementsAre(2048, 65536));
  expect_refused({"barrier"}, "nothing to choose");
  expect_refused({"all_sing"}, "all_sing");
  expect_refused({"all_reduce_residual_rms_norm"}, "--rows 1,2,4 --hidden 8192");
}

TEST_F(TuneOptionsTest, WritesTheUsersTableAndMakesItsFolder) {
  EXPECT_EQ(parse({}, kHostOnly)->bench.output, folder_ / "cache/tutti/tuning.json");
  EXPECT_TRUE(std::filesystem::is_directory(folder_ / "cache/tutti"));
  EXPECT_EQ(parse({"--output", folder_ / "x.json"}, kHostOnly)->bench.output, folder_ / "x.json");
}

TEST_F(TuneOptionsTest, RefusesWhatCannotBeRight) {
  expect_refused({"--algorithms", "auto"}, "give all, or names");
  expect_refused({"--algorithms", "sing"}, "'sing'");
  expect_refused({"--seconds", "0"}, "--seconds: 0 is not between 1 and");
  expect_refused({"--output", "/nowhere/at/all.json"}, "cannot write '/nowhere/at/all.json'");
  EXPECT_THAT(cli::parse({}, kHostOnly, "").status().message(), HasSubstr("give --output FILE"));
  BenchMachine launched = kHostOnly;
  launched.launch = LaunchEnvironment{.launcher = "openmpi", .rank = 0, .size = 2, .job = ""};
  EXPECT_THAT(parse({}, launched).status().message(), HasSubstr("run it without openmpi"));
}

TEST_F(TuneOptionsTest, ReachTheRanks) {
  const auto options =
      parse({"--bytes", "1K,64K", "-d", "fp16", "--algorithms", "two_shot", "--seconds", "7",
             "--without", "two_shot 8x64,ring", "--inject", "crash:1:two_shot"},
            kEightGpus);
  ASSERT_TRUE(options.is_ok()) << options.status().to_string();
  std::vector<std::string> words = rank_words(*options);
  EXPECT_EQ(words.front(), "tune");
  words.erase(words.begin());
  words.insert(words.end(), {"--worker-fd", "5"});
  auto theirs = parse(words, kEightGpus);
  ASSERT_TRUE(theirs.is_ok()) << theirs.status().to_string();
  EXPECT_EQ(theirs->seconds, options->seconds);
  EXPECT_THAT(theirs->without, ElementsAre("two_shot 8x64", "ring"));
  theirs->bench.worker_fd = options->bench.worker_fd;
  theirs->bench.output = options->bench.output;  // written by the launcher alone
  EXPECT_EQ(theirs->bench, options->bench);
}

TEST_F(TuneOptionsTest, TheCollectiveReachesTheRanks) {
  for (const auto& words : {std::vector<std::string>{"reduce_scatter", "--bytes", "1K"},
                            std::vector<std::string>{"all_reduce_residual_rms_norm", "--rows", "2",
                                                     "--hidden", "64"}}) {
    const auto options = parse(words, kEightGpus);
    ASSERT_TRUE(options.is_ok()) << options.status().to_string();
    std::vector<std::string> theirs = rank_words(*options);
    theirs.erase(theirs.begin());
    theirs.insert(theirs.end(), {"--worker-fd", "5"});
    const auto read = parse(theirs, kEightGpus);
    ASSERT_TRUE(read.is_ok()) << read.status().to_string();
    EXPECT_EQ(read->bench.collective, options->bench.collective);
    EXPECT_EQ(read->bench.bytes, options->bench.bytes);
    EXPECT_EQ(read->bench.hidden, options->bench.hidden);
  }
}

TEST(Forecast, FollowsWhatWasMeasured) {
  Forecast forecast(100);
  EXPECT_EQ(forecast.left(0), 100);
  forecast.finish(25);
  EXPECT_EQ(forecast.left(50), 150);
  forecast.finish(75);
  EXPECT_EQ(forecast.left(200), 0);
  EXPECT_EQ(duration_text(59.2), "59 s");
  EXPECT_EQ(duration_text(200), "3 min 20 s");
}

}  // namespace
}  // namespace tutti::cli
