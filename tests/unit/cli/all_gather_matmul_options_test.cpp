#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/all_gather_matmul/arguments.hpp"
#include "bench/all_gather_matmul/options.hpp"
#include "machines.hpp"
#include "scratch_folder.hpp"

namespace tutti::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<AllGatherMatmulOptions> parse_gated(std::vector<std::string> words,
                                           const BenchMachine& machine = kEightGpus) {
  CLI::App app;
  AllGatherMatmulArguments arguments;
  add_all_gather_matmul_options(app, arguments);
  std::reverse(words.begin(), words.end());  // as CLI11 takes a vector
  app.parse(words);
  return check_all_gather_matmul_arguments(arguments, machine);
}

AllGatherMatmulOptions parsed_gated(const std::vector<std::string>& words) {
  auto options = parse_gated(words);
  EXPECT_TRUE(options.is_ok()) << options.status().to_string();
  return options.is_ok() ? *options : AllGatherMatmulOptions{};
}

struct BadGated {
  std::string name;
  std::vector<std::string> words;
  std::string text;  // the message
  BenchMachine machine = kEightGpus;

  friend void PrintTo(const BadGated& of, std::ostream* out) { *out << of.name; }
};

class AllGatherMatmulRefused : public testing::TestWithParam<BadGated> {};

TEST_P(AllGatherMatmulRefused, WithAMessageThatHelps) {
  const auto options = parse_gated(GetParam().words, GetParam().machine);
  ASSERT_FALSE(options.is_ok());
  EXPECT_EQ(options.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(options.status().message(), GetParam().text);
}

const BadGated kBadGated[] = {
    {"no_rows", {"--m", "8,0"}, "--m: 0 is not between 1 and 1048576"},
    {"preset_and_k",
     {"--preset", "recipes", "--k", "8"},
     "--preset has its own --n, --k and --weights; only --m can be given with it"},
    {"wide_type",
     {"--dtype", "bf16,fp32"},
     "--dtype fp32: the own kernel multiplies bf16 and fp16"},
    {"unknown_order",
     {"--algorithms", "rotate"},
     "unknown --algorithms 'rotate'; did you mean 'rotated'? Known are plain, gated, rotated, "
     "frontier, all"},
    {"unknown_tile",
     {"--tile", "64x64"},
     "unknown --tile '64x64'; known are 128x256, 256x128, 128x240, 128x224, 128x208, 128x192, "
     "128x176, 128x160, 128x144, 128x128, 128x112"},
    {"many_ranks", {"--ranks", "17"}, "--ranks: 17 is not between 1 and 16"},
    {"no_chunks", {"--chunks", "0"}, "--chunks: 0 is not between 1 and 16"},
    {"many_flags", {"--ranks", "4", "--chunks", "33"}, "--chunks: 33 is not between 1 and 32"},
    {"many_k_groups", {"--chunks", "2", "--k-groups", "9"}, "--k-groups: 9 is not between 1 and 8"},
    {"odd_pullers", {"--pullers", "5"}, "--pullers 5: a multiple of 2, the blocks of a cluster"},
    {"k_groups_in_another_order",
     {"--k-groups", "2", "--algorithms", "rotated,frontier"},
     "--algorithms rotated,frontier: only the rotated order has --k-groups 2"},
    {"nobody_pulls",
     {"--arrival", "pull"},
     "--arrival pull: needs --pullers, two or more --ranks and one of --chunks"},
    {"unknown_arrival",
     {"--arrival", "opne"},
     "unknown --arrival 'opne'; did you mean 'open'? Known are open, model, pull, trace:FILE, "
     "host"},
    {"of_ranks", {"--protocol", "put"}, "--protocol is of several ranks; give --gpus"},
    {"movers", {"--mover", "kernel"}, "--mover is of several ranks; give --gpus"},
    {"calls", {"--calls", "2"}, "--calls is of several ranks; give --gpus"},
    {"many_calls", {"--calls", "65", "--arrival", "host"}, "--calls: 65 is not between 1 and 64"},
    {"no_file",
     {"--arrival", "trace:"},
     "--arrival trace: needs a file, such as trace:arrival.json"},
    {"absent_file",
     {"--arrival", "trace:/nowhere/arrival.json"},
     "--arrival trace:/nowhere/arrival.json: there is no such file"},
    {"no_gpu",
     {},
     "there is no GPU here (libcuda.so.1 not found), and the gated matmul runs on one; `tutti "
     "doctor` says more",
     kHostOnly},
    {"an_option_before_the_gpu", {"--ranks", "0"}, "--ranks: 0 is not between 1 and 16", kHostOnly},
};
INSTANTIATE_TEST_SUITE_P(Bad, AllGatherMatmulRefused, testing::ValuesIn(kBadGated),
                         [](const auto& parameter) { return parameter.param.name; });

TEST(AllGatherMatmulOptions, Defaults) {
  const AllGatherMatmulOptions options = parsed_gated({});
  EXPECT_THAT(options.matmul.shapes, ElementsAre(MatmulExtents{8192, 8192, 8192}));
  EXPECT_THAT(options.matmul.dtypes, ElementsAre(DataType::kBfloat16));
  EXPECT_THAT(options.matmul.tiles, ElementsAre(""));
  EXPECT_EQ(options.matmul.bench.iterations, 40);
  EXPECT_EQ(options.matmul.bench.backend, Backend::kCuda);
  EXPECT_EQ(options.matmul.seconds, 3);
  EXPECT_THAT(options.orders,
              ElementsAre(ArrivalOrder::kPlain, ArrivalOrder::kRotated, ArrivalOrder::kFrontier));
  EXPECT_EQ(options.ranks, 8);
  EXPECT_EQ(options.chunks, 1);
  EXPECT_EQ(options.arrival, ArrivalKind::kOpen);
}

TEST(AllGatherMatmulOptions, OrdersComeOnceAndByTheirRowsToo) {
  EXPECT_THAT(parsed_gated({"--algorithms", "frontier,fused_rotated,rotated"}).orders,
              ElementsAre(ArrivalOrder::kFrontier, ArrivalOrder::kRotated));
  EXPECT_THAT(parsed_gated({"--algorithms", "plain"}).orders, ElementsAre());
  EXPECT_EQ(row_of_order(ArrivalOrder::kPlain), "fused_plain_order");
}

class AllGatherMatmulTrace : public testing::Test {
 protected:
  // Of 4 shards with 2 chunks, of 8 rows of 8 elements; shard 1 is there beforehand.
  AllGatherMatmulTrace() {
    const auto trace = modelled_arrival({.shards = 4, .chunks = 2, .own = 1},
                                        {.m = 8, .bytes_per_row = 16}, {}, "a machine");
    folder_.write("arrival.json", to_json_text(*trace));
    folder_.write("broken.json", "{}");
  }
  Result<AllGatherMatmulOptions> parse(std::vector<std::string> words,
                                       const std::string& file = "arrival.json") {
    words.insert(words.end(), {"--n", "8", "--arrival", "trace:" + (folder_ / file)});
    return parse_gated(words);
  }

  ScratchFolder folder_;
};

TEST_F(AllGatherMatmulTrace, HasTheShardsAndChunks) {
  const auto options = parse({"--m", "8", "--k", "8"});
  ASSERT_TRUE(options.is_ok()) << options.status().to_string();
  EXPECT_EQ(options->ranks, 4);
  EXPECT_EQ(options->chunks, 2);
  EXPECT_EQ(options->own, 1);
  EXPECT_EQ(options->arrival, ArrivalKind::kTrace);
  ASSERT_TRUE(options->trace.has_value());
  EXPECT_EQ(options->trace->arrivals.size(), 6u);
  EXPECT_TRUE(parse({"--m", "8", "--k", "8", "--ranks", "4"}).is_ok());
}

TEST_F(AllGatherMatmulTrace, MustFit) {
  EXPECT_EQ(parse({"--m", "8", "--k", "8", "--ranks", "2"}).status().message(),
            "--ranks 2: the trace has 4; leave --ranks out");
  EXPECT_EQ(parse({"--m", "8", "--k", "8", "--chunks", "1"}).status().message(),
            "--chunks 1: the trace has 2; leave --chunks out");
  const Status other = parse({"--m", "8,16", "--k", "8"}).status();
  EXPECT_EQ(other.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(other.message(), HasSubstr("--arrival, m 16, n 8, k 8"));
  EXPECT_THAT(other.message(), HasSubstr("the trace is of another A: its chunk 0 has 16 bytes, "
                                         "that of 16 rows of 16 bytes has 32"));
  const Status broken = parse({"--m", "8", "--k", "8"}, "broken.json").status();
  EXPECT_EQ(broken.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(broken.message(), HasSubstr("broken.json does not hold an arrival trace: "));
}

}  // namespace
}  // namespace tutti::cli
