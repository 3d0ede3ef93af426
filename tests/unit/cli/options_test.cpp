#include "bench/options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/units.hpp"
#include "bench/arguments.hpp"
#include "machines.hpp"
#include "scratch_folder.hpp"

namespace tutti::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<BenchOptions> parse(std::vector<std::string> words, const BenchMachine& machine) {
  CLI::App app;
  BenchArguments arguments;
  add_bench_options(app, arguments);
  words.insert(words.begin(), "all_reduce");
  std::reverse(words.begin(), words.end());  // as CLI11 takes a vector
  app.parse(words);
  return check_arguments(arguments, machine);
}

BenchOptions parsed(const std::vector<std::string>& words, const BenchMachine& machine) {
  auto options = parse(words, machine);
  EXPECT_TRUE(options.is_ok()) << options.status().to_string();
  return options.is_ok() ? *options : BenchOptions{};
}

// One of two ranks that mpirun started here.
BenchMachine launched(int rank) {
  BenchMachine machine = kHostOnly;
  machine.launch = LaunchEnvironment{.launcher = "openmpi", .rank = rank, .size = 2, .job = ""};
  return machine;
}

struct BadInput {
  std::string name;
  std::vector<std::string> words;
  std::string text;  // part of the message
  BenchMachine machine = kHostOnly;

  friend void PrintTo(const BadInput& of, std::ostream* out) { *out << of.name; }
};

class Refused : public testing::TestWithParam<BadInput> {};

TEST_P(Refused, WithAMessageThatHelps) {
  const auto options = parse(GetParam().words, GetParam().machine);
  ASSERT_FALSE(options.is_ok());
  EXPECT_EQ(options.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(options.status().message(), HasSubstr(GetParam().text));
}

const BadInput kBadInputs[] = {
    {"unknown_algorithm",
     {"--algorithms", "tree"},
     "'tree' for all_reduce; known are one_shot, two_shot, one_shot_push"},
    {"one_of_several", {"--algorithms", "one_shot,tree"}, "'tree'"},
    {"unknown_dtype", {"--dtype", "fp12"}, "'fp12'; did you mean 'fp32'? Known are fp64, fp32"},
    {"unknown_op", {"--op", "xor"}, "'xor'; known are sum, prod"},
    {"unknown_backend", {"--backend", "rocm"}, "'rocm'; known are auto, host, cuda"},
    {"min_above_max", {"-b", "2K", "-e", "1K"}, "--min-bytes 2K is larger than --max-bytes 1K"},
    {"min_zero", {"-b", "0"}, "--bytes 0 measures 0"},
    {"factor_one", {"-f", "1"}, "--factor: 1 does not make sizes grow; give 2 or more"},
    {"factor_text", {"-f", "two"}, "--factor: 'two' is not a whole number"},
    {"factor_trailing", {"-f", "2x"}, "--factor: '2x' is not a whole number"},
    {"zero_ranks", {"--ranks", "0"}, "0 ranks have nothing to reduce"},
    {"zero_ranks_in_list", {"--ranks", "2,0"}, "0 ranks have nothing to reduce"},
    {"negative_ranks", {"--ranks=-2"}, "-2 is not between 0 and"},
    {"empty_rank", {"--ranks", "2,"}, "'' is not a whole number"},
    {"too_many_host_ranks", {"--ranks", "17"}, "no algorithm takes more than 16 on the host"},
    {"more_ranks_than_gpus", {"--ranks", "9"}, "there are 8 GPUs here", kEightGpus},
    {"cuda_without_gpu", {"--backend", "cuda"}, "there is no GPU here (libcuda.so.1 not found)"},
    {"no_such_folder", {"--output", "/nowhere/at/all.json"}, "cannot write '/nowhere/at/all.json'"},
    {"no_folder_for_a_trace", {"--trace", "/nowhere/at/all.json"}, "cannot write '/nowhere"},
    {"trace_of_nothing",
     {"--trace", "x.json"},
     "TUTTI_RECORDER is 0",
     {.gpus = 0, .why_no_gpu = "", .records = false}},
    {"output_is_folder", {"--output", "/"}, "it is a folder"},
    {"append_without_file", {"--append"}, "--append needs --output FILE"},
    {"graph_on_host", {"--mode", "graph"}, "graphs are of the CUDA backend"},
    {"unknown_mode", {"--mode", "lazy"}, "unknown --mode 'lazy'; known are graph, eager"},
    {"unknown_buffers", {"--buffers", "old"}, "known are symmetric, registered, plain"},
    {"unknown_format", {"--format", "xml"}, "known are table, markdown, csv, json"},
    {"unknown_check", {"--check", "maybe"}, "known are on, off"},
    {"bytes_of_nothing", {"--bytes", "1Q"}, "'1Q' is not a size"},
    {"factor_and_step", {"-f", "2", "-i", "4K"}, "by --factor or by --stepbytes, not by both"},
    {"step_zero", {"-i", "0"}, "--stepbytes: 0 does not make sizes grow"},
    {"step_too_small", {"-i", "1"}, "--stepbytes 1: that makes more than 10000 sizes"},
    {"two_kinds_of_sizes", {"--bytes", "1K", "-e", "2K"}, "sizes come from one of"},
    {"rows_alone", {"--rows", "32"}, "--rows and --hidden come together"},
    {"zero_rows", {"--rows", "0", "--hidden", "64"}, "0 is not between 1 and"},
    {"cold_and_chained", {"--cache", "cold", "--chained"}, "measure them apart"},
    {"no_iterations", {"-n", "0"}, "--iterations: 0 is not between 1 and"},
    {"no_operations", {"--graph-operations", "0"}, "0 is not between 1 and 1000"},
    {"graph_twice", {"-G", "1", "--mode", "eager"}, "-G says what --mode and"},
    {"nccl_tests_graph_on_host", {"-G", "2"}, "graphs are of the CUDA backend"},
    {"ranks_that_a_launcher_did_not_start",
     {"--ranks", "4"},
     "--ranks 4: openmpi started 2 ranks; leave --ranks out, or give --launch processes",
     launched(0)},
    {"trace_of_a_launchers_ranks",
     {"--trace", "x.json"},
     "ranks that openmpi started",
     launched(0)},
    {"budget_below_none", {"--sm-budget=-1"}, "--sm-budget: -1 is not between 0 and"},
    {"append_with_budget",
     {"--sm-budget", "0", "--append", "--output", "x.json"},
     "rows do not say their --sm-budget"},
    {"crash_of_threads", {"--inject", "crash:0", "--launch", "threads"}, "--launch processes"},
};
INSTANTIATE_TEST_SUITE_P(Bench, Refused, testing::ValuesIn(kBadInputs),
                         [](const auto& parameter) { return parameter.param.name; });

TEST(BenchOptions, OnTheHostByDefault) {
  const BenchOptions options = parsed({}, kHostOnly);
  EXPECT_EQ(options.backend, Backend::kHost);
  EXPECT_THAT(options.ranks, ElementsAre(2));
  EXPECT_EQ(options.bytes.front(), 1 * KiB);
  EXPECT_EQ(options.bytes.back(), 16 * MiB);
  EXPECT_EQ(options.bytes.size(), 15u);
  EXPECT_EQ(options.dtype, DataType::kFloat32);
  EXPECT_EQ(options.mode, Mode::kEager);
  EXPECT_EQ(options.operations(), 1);
  EXPECT_THAT(options.algorithms, ElementsAre("auto"));  // no GPU, no NCCL
  EXPECT_THAT(parsed({"--algorithms", "all"}, kHostOnly).algorithms,
              ElementsAre("one_shot", "two_shot", "one_shot_push", "two_shot_push",
                          "two_shot_staged", "two_shot_tma", "one_shot_copy_engine",
                          "two_shot_copy_engine", "ring", "ring_bidirectional"));
}

TEST(BenchOptions, OnGpusByDefault) {
  const BenchOptions options = parsed({}, kEightGpus);
  EXPECT_EQ(options.backend, Backend::kCuda);
  EXPECT_THAT(options.ranks, ElementsAre(8));
  EXPECT_EQ(options.bytes.back(), 64 * MiB);
  EXPECT_EQ(options.dtype, DataType::kBfloat16);
  EXPECT_EQ(options.mode, Mode::kGraph);
  EXPECT_EQ(options.operations(), 10);
  EXPECT_GE(options.iterations, 50);
  EXPECT_THAT(options.algorithms, ElementsAre("auto", "nccl"));
  EXPECT_THAT(parsed({"--algorithms", "all"}, kEightGpus).algorithms, testing::Contains("nccl"));
}

// As in a command line of nccl-tests.
TEST(BenchOptions, HaveTheNamesOfNcclTests) {
  const auto options = parsed({"-b", "8", "-e", "32", "-i", "8", "-g", "4", "-c", "0", "-G", "3",
                               "-d", "half", "-w", "1", "-n", "20"},
                              kEightGpus);
  EXPECT_THAT(options.bytes, ElementsAre(8, 16, 24, 32));
  EXPECT_THAT(options.ranks, ElementsAre(4));
  EXPECT_FALSE(options.check);
  EXPECT_EQ(options.mode, Mode::kGraph);
  EXPECT_EQ(options.graph_operations, 3);
  EXPECT_EQ(options.dtype, DataType::kFloat16);
  EXPECT_EQ(parsed({"-G", "0", "-c", "1"}, kEightGpus).mode, Mode::kEager);
  const std::pair<const char*, Collective> names[] = {
      {"all_reduce_perf", Collective::kAllReduce}, {"alltoall_perf", Collective::kAllToAll},
      {"sendrecv_perf", Collective::kSendRecv},    {"broadcast_perf", Collective::kBroadcast},
      {"reduce_perf", Collective::kReduce},        {"gather_perf", Collective::kGather}};
  for (const auto& [name, collective] : names) {
    BenchArguments arguments;
    arguments.collective = name;
    const auto parsed = check_arguments(arguments, kHostOnly);
    ASSERT_TRUE(parsed.is_ok()) << name;
    EXPECT_EQ(parsed->collective, collective) << name;
  }
}

// The ranks are those that mpirun or torchrun started, unless --launch asks for others.
TEST(BenchOptions, JoinALaunch) {
  const BenchOptions first = parsed({"--ranks", "2"}, launched(0));
  EXPECT_EQ(first.launcher, "openmpi");
  EXPECT_TRUE(first.speaks);
  const BenchOptions second = parsed({}, launched(1));
  EXPECT_THAT(second.ranks, ElementsAre(2));
  EXPECT_FALSE(second.speaks);
  const BenchOptions own = parsed({"--launch", "processes", "--ranks", "4"}, launched(1));
  EXPECT_EQ(own.launcher, "");
  EXPECT_TRUE(own.speaks);
  EXPECT_THAT(own.ranks, ElementsAre(4));
}

TEST(BenchOptions, SizesAreRoundedDownToElements) {
  EXPECT_THAT(parsed({"--bytes", "0,7,9,15,17", "-d", "fp64"}, kHostOnly).bytes,
              ElementsAre(0, 8, 16));
}

TEST(BenchOptions, SweepEndsAtTheLargestThatFits) {
  EXPECT_THAT(parsed({"-b", "1K", "-e", "10K", "-f", "3"}, kHostOnly).bytes,
              ElementsAre(1024, 3072, 9216));
  EXPECT_THAT(parsed({"-b", "32M"}, kHostOnly).bytes, ElementsAre(32 * MiB));
  EXPECT_THAT(parsed({"-e", "512"}, kHostOnly).bytes, ElementsAre(512));
}

TEST(BenchOptions, RowsTimesHiddenElements) {
  EXPECT_THAT(parsed({"--rows", "32,64", "--hidden", "8192", "-d", "bf16"}, kHostOnly).bytes,
              ElementsAre(512 * KiB, 1 * MiB));
}

TEST(BenchOptions, AlgorithmsMayBeNamedByIdAndOnceEach) {
  EXPECT_THAT(
      parsed({"--algorithms", "all_reduce/two_shot,one_shot,two_shot"}, kHostOnly).algorithms,
      ElementsAre("two_shot", "one_shot"));
  EXPECT_THAT(parsed({"--algorithms", "auto,two_shot,auto"}, kHostOnly).algorithms,
              ElementsAre("auto", "two_shot"));
}

TEST(BenchOptions, ChainsOnTheHostAreSampledWhole) {
  EXPECT_EQ(parsed({"--chained", "--graph-operations", "4"}, kHostOnly).operations(), 4);
}

TEST(BenchOptions, SurviveTheirOwnCommandLine) {
  const std::vector<std::vector<std::string>> lines = {
      {},
      {"--ranks", "2,4", "--bytes", "0,1K,1000", "-d", "fp16", "-o", "max", "--chained"},
      {"--in-place", "--check", "off", "-n", "7", "-w", "0", "--launch", "threads"},
      {"--algorithms", "auto,ring", "--cache", "cold", "--buffers", "plain", "--timeout-ms", "99"},
      {"--algorithms", "all"},
      {"--sm-budget", "0"},
      {"--sm-budget", "16", "--in-place"},
      {"--algorithms", "two_shot", "--inject", "flip:1", "--graph-operations", "3"},
      {"--inject", "crash:0:two_shot"}};
  for (const BenchMachine& machine : {kHostOnly, kEightGpus}) {
    for (const auto& line : lines) {
      const BenchOptions options = parsed(line, machine);
      std::vector<std::string> words = to_arguments(options);
      words.erase(words.begin());  // the collective
      EXPECT_EQ(parsed(words, machine), options);
    }
  }
}

TEST(BenchOptions, CheckingLeavesNoFileBehind) {
  const ScratchFolder folder;
  parsed({"--output", folder / "x.json"}, kHostOnly);
  EXPECT_EQ(folder.files(), 0u);
}

}  // namespace
}  // namespace tutti::cli
