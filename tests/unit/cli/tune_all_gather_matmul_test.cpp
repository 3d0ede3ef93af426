// `tutti tune all_gather_matmul`: its options, what it measures, and what it decides.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/measurement.hpp"
#include "machines.hpp"
#include "scratch_folder.hpp"
#include "tune/all_gather_matmul/candidates.hpp"
#include "tune/all_gather_matmul/options.hpp"
#include "tune/table_file.hpp"

namespace tutti::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Fused = AllGatherMatmulAlgorithm;

class TuneAllGatherMatmulOptionsTest : public testing::Test {
 protected:
  Result<TuneAllGatherMatmulOptions> parse(std::vector<std::string> words,
                                           const BenchMachine& machine) {
    CLI::App app;
    TuneAllGatherMatmulArguments arguments;
    add_tune_all_gather_matmul_options(app, arguments);
    std::reverse(words.begin(), words.end());  // as CLI11 takes a vector
    app.parse(words);
    return check_tune_all_gather_matmul_arguments(arguments, machine, folder_ / "c/tuning.json");
  }
  void expect_refused(const std::vector<std::string>& words, const std::string& text) {
    EXPECT_THAT(parse(words, kHostOnly).status().message(), HasSubstr(text));
  }
  ScratchFolder folder_;
};

TEST_F(TuneAllGatherMatmulOptionsTest, MeasuresTheRecipesOnAllGpusByDefault) {
  const auto options = parse({}, kEightGpus);
  ASSERT_TRUE(options.is_ok()) << options.status().to_string();
  EXPECT_THAT(options->bench.ranks, ElementsAre(2, 3, 4, 5, 6, 7, 8));
  EXPECT_EQ(options->bench.dtype, DataType::kBfloat16);
  EXPECT_EQ(options->bench.output, folder_ / "c/tuning.json");
  EXPECT_EQ(options->shapes.size(), 10u);
  EXPECT_THAT(options->algorithms, ElementsAre(Fused::kPipelinedShift, Fused::kPipelinedRing,
                                               Fused::kPipelinedTiles, Fused::kFused));
}

TEST_F(TuneAllGatherMatmulOptionsTest, TheProcessOfARankGetsTheSame) {
  auto options = parse(
      {"--m", "64,128", "--weights", "8x16,24x32", "--layout", "column", "-n", "7", "--algorithms",
       "fused,unfused,fused", "--ranks", "3", "--mover", "kernel", "--inter-stream-order", "on"},
      kHostOnly);
  ASSERT_TRUE(options.is_ok()) << options.status().to_string();
  options->shapes.erase(options->shapes.begin());  // which --resume may leave out
  std::vector<std::string> words = rank_words(*options);
  words.erase(words.begin(), words.begin() + 2);
  words.insert(words.end(), {"--worker-fd", "5"});
  const auto again = parse(words, kHostOnly);
  ASSERT_TRUE(again.is_ok()) << again.status().to_string();
  EXPECT_EQ(again->shapes, options->shapes);
  EXPECT_EQ(again->algorithms, options->algorithms);
  EXPECT_EQ(again->layout, MatrixLayout::kColumnMajor);
  EXPECT_EQ(again->mover.mover, pipelines::Mover::kKernel);
  EXPECT_TRUE(again->mover.inter_stream_order);
  EXPECT_EQ(again->bench.iterations, 7);
  EXPECT_THAT(again->bench.ranks, ElementsAre(3));
  options->algorithms.clear();  // unfused alone
  words = rank_words(*options);
  words.erase(words.begin(), words.begin() + 2);
  EXPECT_TRUE(parse(words, kHostOnly)->algorithms.empty());
}

TEST_F(TuneAllGatherMatmulOptionsTest, WhatIsWrongIsNamed) {
  expect_refused({"--algorithms", "nccl"}, "--algorithms: unknown algorithm of all_gather_matmul");
  expect_refused({"--dtype", "int8"}, "--dtype");
  expect_refused({"--layout", "diagonal"}, "--layout");
  expect_refused({"--m", "0"}, "--m");
  expect_refused({"--mover", "hand"}, "--mover: unknown mover 'hand'");
  expect_refused({"--inter-stream-order", "maybe"}, "unknown --inter-stream-order 'maybe'");
  expect_refused({"--sizes", "1x2"}, "--sizes takes MxNxK");
  expect_refused({"--preset", "recipes", "--n", "3"}, "--preset");
}

TEST(TuneAllGatherMatmul, MeasuresEachWayOnce) {
  const Fused algorithms[] = {Fused::kPipelinedRing, Fused::kPipelinedTiles, Fused::kFused};
  const auto cuda = ways_to_measure(algorithms, Backend::kCuda, {});
  EXPECT_EQ(cuda.size(), 1u + 4 + 8 + 2);
  EXPECT_EQ(cuda.front(), AllGatherMatmulWay{});
  EXPECT_EQ(ways_to_measure(algorithms, Backend::kHost, {}).size(), 1u + 2 + 4 + 1);
  for (std::size_t i = 0; i < cuda.size(); ++i) {
    EXPECT_EQ(std::count(cuda.begin(), cuda.end(), cuda[i]), 1);
  }
  const auto chosen =
      ways_to_measure(algorithms, Backend::kCuda, {pipelines::Mover::kKernel, true});
  ASSERT_EQ(chosen.size(), cuda.size());
  EXPECT_EQ(to_text(chosen[1]), "pipelined_ring, get by kernel, 4 streams in order");
  EXPECT_EQ(chosen.back(), cuda.back()) << "no pipeline";
}

std::vector<MeasuredWay> ways_timed(const std::vector<double>& times_us) {
  const AllGatherMatmulWay ways[] = {{},
                                     {.algorithm = Fused::kFused},
                                     {Fused::kPipelinedRing, pipelines::Protocol::kGet, 4, 0},
                                     {Fused::kPipelinedRing, pipelines::Protocol::kPut, 4, 0}};
  std::vector<MeasuredWay> all;
  for (std::size_t i = 0; i < times_us.size(); ++i) all.push_back({ways[i], times_us[i], 30});
  return all;
}

TEST(TuneAllGatherMatmul, KeepsUnfusedAndTheFastest) {
  EXPECT_THAT(finalists(ways_timed({9, 5, 4, 3}), 2), ElementsAre(0, 2, 3));
  EXPECT_THAT(finalists(ways_timed({1, 5, 4, 3}), 1), ElementsAre(0, 3));
  EXPECT_THAT(finalists(ways_timed({1}), 4), ElementsAre(0));
}

TEST(TuneAllGatherMatmul, TakesTheFastestThatBeatsUnfusedByThreePercent) {
  const AllGatherMatmulEntry best = decide(ways_timed({100, 90, 85, 80}));
  EXPECT_EQ(best.way, ways_timed({0, 0, 0, 0})[3].way);
  EXPECT_EQ(best.time_us, 80);
  EXPECT_EQ(best.unfused_us, 100);
  EXPECT_EQ(best.runner_up, Fused::kFused);
  EXPECT_EQ(best.runner_up_us, 90);
  EXPECT_EQ(best.samples, 30);
  EXPECT_EQ(decide(ways_timed({100, 97, 99, 99})).way.algorithm, Fused::kFused);
  const AllGatherMatmulEntry unfused = decide(ways_timed({100, 97.1, 98, 99}));
  EXPECT_EQ(unfused.way, AllGatherMatmulWay{});
  EXPECT_EQ(unfused.time_us, 100);
  EXPECT_EQ(unfused.runner_up, Fused::kFused);
  EXPECT_EQ(decide(ways_timed({100})).runner_up_us, 0);
}

// But not one that is as good only because it is as good as unfused.
TEST(TuneAllGatherMatmul, OfThoseThatAreAsGoodTheFirstIsTaken) {
  EXPECT_EQ(decide(ways_timed({100, 81, 80, 80})).way.algorithm, Fused::kFused);
  EXPECT_EQ(decide(ways_timed({100, 98, 96.5, 97})).way, ways_timed({0, 0, 0})[2].way);
}

TEST(TuneAllGatherMatmul, ItsReportSurvivesTheJourney) {
  TunedAllGatherMatmul sent{.size = 3, .best = decide(ways_timed({100, 90, 85, 80}))};
  sent.best.way.mover = pipelines::Mover::kKernel;
  sent.best.way.inter_stream_order = true;
  const auto received = report_from_json_text(to_json_text(sent));
  ASSERT_TRUE(received.is_ok()) << received.status().to_string();
  const auto& got = std::get<TunedAllGatherMatmul>(*received);
  EXPECT_EQ(got.size, 3u);
  EXPECT_EQ(got.best, sent.best);
}

TEST(TuneAllGatherMatmul, AnEntryTakesThePlaceOfAnOlderOne) {
  const ScratchFolder folder;
  const std::string file = folder / "tuning.json";
  AllGatherMatmulEntry entry = decide(ways_timed({100, 90}));
  entry.gpu = "NVIDIA H200";
  entry.ranks = 2;
  entry.element_bytes = 2;
  entry.size = {8, 16, 24};
  entry.date = "2026-11-26";
  entry.driver = "580.159";
  AllGatherMatmulEntry other = entry;
  other.size.k = 25;
  for (const AllGatherMatmulEntry& each : {entry, other}) {
    ASSERT_TRUE(add_to_table(file, each).is_ok());
  }
  EXPECT_TRUE(is_measured(read_table(file)->all_gather_matmul, other));
  entry.time_us = 80;
  ASSERT_TRUE(add_to_table(file, entry).is_ok());
  EXPECT_THAT(read_table(file)->all_gather_matmul, ElementsAre(other, entry));
  entry.driver = "590";
  EXPECT_FALSE(is_measured(read_table(file)->all_gather_matmul, entry));
}

}  // namespace
}  // namespace tutti::cli
