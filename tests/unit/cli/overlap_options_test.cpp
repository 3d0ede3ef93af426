#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/units.hpp"
#include "bench/overlap/arguments.hpp"
#include "bench/overlap/options.hpp"
#include "machines.hpp"

namespace tutti::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<OverlapOptions> parse_overlap(std::vector<std::string> words, const BenchMachine& machine) {
  CLI::App app;
  OverlapArguments arguments;
  add_overlap_options(app, arguments);
  std::reverse(words.begin(), words.end());  // as CLI11 takes a vector
  app.parse(words);
  return check_overlap_arguments(arguments, machine);
}

OverlapOptions parsed_overlap(const std::vector<std::string>& words, const BenchMachine& machine) {
  auto options = parse_overlap(words, machine);
  EXPECT_TRUE(options.is_ok()) << options.status().to_string();
  return options.is_ok() ? *options : OverlapOptions{};
}

struct BadOverlap {
  std::string name;
  std::vector<std::string> words;
  std::string text;  // part of the message
  BenchMachine machine = kEightGpus;

  friend void PrintTo(const BadOverlap& of, std::ostream* out) { *out << of.name; }
};

class OverlapRefused : public testing::TestWithParam<BadOverlap> {};

TEST_P(OverlapRefused, WithAMessageThatHelps) {
  const auto options = parse_overlap(GetParam().words, GetParam().machine);
  ASSERT_FALSE(options.is_ok());
  EXPECT_EQ(options.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(options.status().message(), HasSubstr(GetParam().text));
}

const BadOverlap kBadOverlaps[] = {
    {"no_rows", {"--m", "0"}, "--m: 0 is not between 1 and"},
    {"too_many_columns", {"--n", "1048577"}, "--n: 1048577 is not between"},
    {"no_number", {"--k", "8k"}, "--k: '8k' is not a whole number"},
    {"no_bytes", {"--ag-mb", "0"}, "--ag-mb: 0 is not between 1 and"},
    {"unknown_mode", {"--modes", "matmul,both"}, "unknown --modes 'both'; known are matmul, all"},
    {"unknown_algorithm", {"--algorithms", "pull"}, "did you mean 'pull_tma'? Known are push"},
    {"unknown_type", {"--dtype", "int8"}, "int8: a matmul is of fp16, bf16 or fp32"},
    {"half_on_the_host", {"--dtype", "fp16"}, "a BLAS multiplies, and only fp32", kHostOnly},
    {"tf32_of_halves", {"--tf32"}, "--tf32 is how a GPU may multiply fp32"},
    {"tf32_on_the_host", {"--tf32"}, "--tf32 is how a GPU may multiply fp32", kHostOnly},
    {"both_sizes", {"--dependent", "--ag-mb", "4"}, "m / ranks rows of k elements"},
    {"uneven_rows", {"--dependent", "--ranks", "2,3"}, "--m 8192: with --dependent 3 ranks"},
    {"dependent_overlap", {"--dependent", "--modes", "overlap"}, "follows the all_gather"},
    {"csv", {"--format", "csv"}, "not csv"},
    {"csv_file", {"--output", "x.csv"}, "not csv"},
    {"more_ranks_than_gpus", {"--ranks", "9"}, "there are 8 GPUs here"},
    {"unknown_compute", {"--compute", "nothing"}, "'nothing'; known are matmul, arithmetic"},
    {"long_pause", {"--pause", "10001"}, "--pause: 10001 is not between 0 and 10000"},
    {"clocks_on_the_host", {"--clocks"}, "--clocks are those of SMs", kHostOnly},
    {"no_iterations", {"-n", "0"}, "--iterations: 0 is not between"},
};
INSTANTIATE_TEST_SUITE_P(Bad, OverlapRefused, testing::ValuesIn(kBadOverlaps),
                         [](const auto& parameter) { return parameter.param.name; });

TEST(OverlapOptions, DefaultsAreOfTheBackend) {
  const OverlapOptions cuda = parsed_overlap({}, kEightGpus);
  EXPECT_EQ(cuda.bench.backend, Backend::kCuda);
  EXPECT_THAT(cuda.bench.ranks, ElementsAre(8));
  EXPECT_EQ(cuda.matmul.m * cuda.matmul.n * cuda.matmul.k, std::size_t{1} << 39);
  EXPECT_EQ(cuda.matmul.dtype, DataType::kFloat16);
  EXPECT_EQ(cuda.part_bytes(8), 64 * MiB);
  EXPECT_EQ(cuda.bench.iterations, 200);
  EXPECT_EQ(cuda.bench.warmup, 50);
  EXPECT_EQ(cuda.bench.mode, Mode::kEager);
  EXPECT_THAT(cuda.bench.algorithms, ElementsAre("auto"));
  EXPECT_EQ(cuda.phases.size(), 4u);
  const OverlapOptions host = parsed_overlap({"--backend", "host"}, kEightGpus);
  EXPECT_EQ(host.matmul.dtype, DataType::kFloat32);
  EXPECT_EQ(host.matmul.m, 512u);
  EXPECT_EQ(host.part_bytes(2), 4 * MiB);
  EXPECT_EQ(host.bench.iterations, 20);
}

TEST(OverlapOptions, WhatIsDependentFollowsFromTheMatrix) {
  const OverlapOptions options =
      parsed_overlap({"--dependent", "--ranks", "4", "--m", "4096", "--k", "512"}, kEightGpus);
  EXPECT_EQ(options.part_bytes(4), 1024u * 512u * 2u);
  EXPECT_THAT(options.phases, ElementsAre(Phase::kMatmul, Phase::kAllGather, Phase::kSequential));
}

TEST(OverlapOptions, ModesHaveAnOrderAndComeOnce) {
  EXPECT_THAT(parsed_overlap({"--modes", "overlap,matmul,overlap"}, kEightGpus).phases,
              ElementsAre(Phase::kMatmul, Phase::kOverlap));
}

TEST(OverlapOptions, WhatIsBesideTheGather) {
  const OverlapOptions plain = parsed_overlap({}, kEightGpus);
  EXPECT_EQ(plain.compute, Compute::kMatmul);
  EXPECT_EQ(plain.pause_ms, 0);
  EXPECT_FALSE(plain.clocks);
  const OverlapOptions options =
      parsed_overlap({"--compute", "arithmetic", "--pause", "20", "--clocks"}, kEightGpus);
  EXPECT_EQ(options.compute, Compute::kArithmetic);
  EXPECT_EQ(options.pause_ms, 20);
  EXPECT_TRUE(options.clocks);
}

TEST(OverlapOptions, WordsGiveTheSameAgain) {
  const std::vector<std::vector<std::string>> lines = {
      {"--m", "96", "--n", "80", "--k", "64", "--ag-mb", "3", "--ranks", "4", "--check", "off"},
      {"--dependent", "--dtype", "fp32", "--tf32", "--ranks", "2", "-n", "7", "-w", "0"},
      {"--modes", "all_gather,overlap", "--algorithms", "push,nccl", "--buffers", "plain"},
      {"--compute", "arithmetic", "--pause", "20", "--clocks", "--in-place", "--ranks", "2"},
      {"--backend", "host", "--launch", "threads", "--inject", "flip:1:matmul"}};
  for (const auto& line : lines) {
    const OverlapOptions options = parsed_overlap(line, kEightGpus);
    std::vector<std::string> words = to_arguments(options);
    ASSERT_THAT(words, testing::Contains("overlap"));
    words.erase(words.begin(), words.begin() + 2);  // bench overlap
    const OverlapOptions again = parsed_overlap(words, kEightGpus);
    EXPECT_EQ(to_arguments(again), to_arguments(options));
    EXPECT_EQ(again.bench, options.bench);
    EXPECT_EQ(again.phases, options.phases);
    EXPECT_EQ(again.compute, options.compute);
    EXPECT_EQ(again.pause_ms, options.pause_ms);
    EXPECT_EQ(again.clocks, options.clocks);
    EXPECT_EQ(again.part_bytes(2), options.part_bytes(2));
  }
}

}  // namespace
}  // namespace tutti::cli
