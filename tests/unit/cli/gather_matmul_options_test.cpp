// The options of `tutti bench all_gather_matmul` with several ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/all_gather_matmul/arguments.hpp"
#include "bench/all_gather_matmul/ranks/options.hpp"
#include "machines.hpp"

namespace tutti::cli {
namespace {

using testing::ElementsAre;

AllGatherMatmulArguments arguments_of(std::vector<std::string> words) {
  CLI::App app;
  AllGatherMatmulArguments arguments;
  add_all_gather_matmul_options(app, arguments);
  std::reverse(words.begin(), words.end());  // as CLI11 takes a vector
  app.parse(words);
  return arguments;
}

GatherMatmulOptions parsed_gather(const std::vector<std::string>& words,
                                  const BenchMachine& machine = kEightGpus) {
  auto options = check_gather_matmul_arguments(arguments_of(words), machine);
  EXPECT_TRUE(options.is_ok()) << options.status().to_string();
  return options.is_ok() ? *options : GatherMatmulOptions{};
}

struct BadGather {
  std::string name;
  std::vector<std::string> words;
  std::string text;  // the message

  friend void PrintTo(const BadGather& of, std::ostream* out) { *out << of.name; }
};

class GatherMatmulRefused : public testing::TestWithParam<BadGather> {};

TEST_P(GatherMatmulRefused, WithAMessageThatHelps) {
  const auto options = check_gather_matmul_arguments(arguments_of(GetParam().words), kEightGpus);
  ASSERT_FALSE(options.is_ok());
  EXPECT_EQ(options.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(options.status().message(), testing::StartsWith(GetParam().text));
}

const BadGather kBadGathers[] = {
    {"emulated_ranks",
     {"--gpus", "2", "--ranks", "8"},
     "--ranks is of one GPU that acts for several, and here the ranks are real; leave out --ranks"},
    {"arrival", {"--gpus", "2", "--arrival", "host"}, "--arrival is of one GPU"},
    {"many", {"--gpus", "9"}, "--gpus 9: "},
    {"unknown_algorithm",
     {"--gpus", "2", "--algorithms", "fusd"},
     "unknown --algorithms 'fusd'; did you mean 'fused'? Known are unfused, nccl_unfused, "
     "pipelined_shift, pipelined_ring, pipelined_tiles, fused, all"},
    {"protocol", {"--gpus", "2", "--protocol", "push"}, "--protocol: "},
    {"mover", {"--gpus", "2", "--mover", "hand"}, "--mover: unknown mover 'hand'"},
    {"streams", {"--gpus", "2", "--streams", "17"}, "--streams: 17 is not between 1 and 16"},
    {"tiles", {"--gpus", "2", "--tiles", "0"}, "--tiles: 0 is not between 1 and 64"},
    {"transport",
     {"--gpus", "2", "--transport", "push"},
     "--transport: transport \"push\": auto, copy_engine or pull"},
    {"calls", {"--gpus", "2", "--calls", "65"}, "--calls: 65 is not between 1 and 64"},
    {"shape", {"--gpus", "2", "--m", "0"}, "--m: 0 is not between 1 and 1048576"},
};
INSTANTIATE_TEST_SUITE_P(Bad, GatherMatmulRefused, testing::ValuesIn(kBadGathers),
                         [](const auto& parameter) { return parameter.param.name; });

TEST(GatherMatmulOptions, Defaults) {
  const GatherMatmulOptions options = parsed_gather({"--gpus", "2,8"});
  EXPECT_THAT(options.matmul.bench.ranks, ElementsAre(2, 8));
  EXPECT_EQ(options.matmul.bench.backend, Backend::kCuda);
  EXPECT_EQ(options.matmul.bench.iterations, 40);
  EXPECT_EQ(options.matmul.seconds, 3);
  EXPECT_THAT(options.matmul.dtypes, ElementsAre(DataType::kBfloat16));
  EXPECT_THAT(options.algorithms, ElementsAre("unfused", "nccl_unfused", "pipelined_shift",
                                              "pipelined_ring", "pipelined_tiles", "fused"));
  EXPECT_EQ(options.calls, 4);
  EXPECT_EQ(options.pipeline_text("pipelined_tiles"), "get, 8 tiles, 4 streams");
  EXPECT_EQ(options.pipeline_text("fused"), "");
  const GatherMatmulOptions host = parsed_gather({"--backend", "host"}, kHostOnly);
  EXPECT_THAT(host.matmul.bench.ranks, ElementsAre(2));
  EXPECT_EQ(host.matmul.bench.iterations, 10);
  EXPECT_THAT(host.matmul.dtypes, ElementsAre(DataType::kFloat32));
}

TEST(GatherMatmulOptions, RanksAreAskedForByAnOptionOrALauncher) {
  EXPECT_FALSE(has_ranks(arguments_of({"--ranks", "8"}), kEightGpus));
  EXPECT_TRUE(has_ranks(arguments_of({"--gpus", "2"}), kEightGpus));
  EXPECT_TRUE(has_ranks(arguments_of({"--backend", "host"}), kHostOnly));
  EXPECT_TRUE(has_ranks(arguments_of({"--launch", "threads"}), kEightGpus));
  BenchMachine launched = kEightGpus;
  launched.launch = LaunchEnvironment{.rank = 1, .size = 2};
  EXPECT_TRUE(has_ranks(arguments_of({}), launched));
  launched.launch = LaunchEnvironment{.rank = 0, .size = 1};
  EXPECT_FALSE(has_ranks(arguments_of({}), launched));
}

TEST(GatherMatmulOptions, ReachTheRanks) {
  const GatherMatmulOptions sent = parsed_gather({"--gpus",
                                                  "2",
                                                  "--preset",
                                                  "recipes",
                                                  "--m",
                                                  "512",
                                                  "--layout",
                                                  "column,row",
                                                  "--dtype",
                                                  "fp16",
                                                  "--algorithms",
                                                  "fused,unfused",
                                                  "--protocol",
                                                  "put",
                                                  "--streams",
                                                  "3",
                                                  "--tiles",
                                                  "5",
                                                  "--calls",
                                                  "6",
                                                  "-n",
                                                  "7",
                                                  "-w",
                                                  "1",
                                                  "--seconds",
                                                  "0",
                                                  "--check",
                                                  "off",
                                                  "--timeout-ms",
                                                  "1234",
                                                  "--launch",
                                                  "threads",
                                                  "--inject",
                                                  "flip:1:fused",
                                                  "--mover",
                                                  "kernel",
                                                  "--inter-stream-order",
                                                  "on"});
  std::vector<std::string> words = to_arguments(sent);
  ASSERT_EQ(words[1], "all_gather_matmul");
  words.erase(words.begin(), words.begin() + 2);
  const GatherMatmulOptions got = parsed_gather(words);
  EXPECT_EQ(got.matmul.bench, sent.matmul.bench);
  EXPECT_EQ(got.matmul.shapes, sent.matmul.shapes);
  EXPECT_EQ(got.matmul.dtypes, sent.matmul.dtypes);
  EXPECT_EQ(got.matmul.layouts, sent.matmul.layouts);
  EXPECT_EQ(got.matmul.seconds, 0);
  EXPECT_EQ(got.algorithms, sent.algorithms);
  EXPECT_EQ(got.protocol, "put");
  EXPECT_EQ(got.streams, 3);
  EXPECT_EQ(got.tiles, 5);
  EXPECT_EQ(got.calls, 6);
  EXPECT_EQ(got.pipeline().mover, "kernel");
  EXPECT_TRUE(got.pipeline().inter_stream_order);
  EXPECT_EQ(got.pipeline_text("pipelined_ring"), "put by kernel, 3 streams in order");
}

TEST(GatherMatmulOptions, TheTransportReachesTheRanks) {
  std::vector<std::string> words =
      to_arguments(parsed_gather({"--gpus", "2", "--transport", "pull"}));
  words.erase(words.begin(), words.begin() + 2);
  const GatherMatmulOptions got = parsed_gather(words);
  EXPECT_EQ(got.fused().transport, "pull");
  EXPECT_EQ(got.pipeline_text("fused"), "pull");
}

}  // namespace
}  // namespace tutti::cli
