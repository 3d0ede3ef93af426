#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/matmul/arguments.hpp"
#include "bench/matmul/options.hpp"
#include "machines.hpp"

namespace tutti::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<MatmulBenchOptions> parse_matmul(std::vector<std::string> words,
                                        const BenchMachine& machine) {
  CLI::App app;
  MatmulArguments arguments;
  add_matmul_options(app, arguments);
  std::reverse(words.begin(), words.end());  // as CLI11 takes a vector
  app.parse(words);
  return check_matmul_arguments(arguments, machine);
}

MatmulBenchOptions parsed_matmul(const std::vector<std::string>& words,
                                 const BenchMachine& machine) {
  auto options = parse_matmul(words, machine);
  EXPECT_TRUE(options.is_ok()) << options.status().to_string();
  return options.is_ok() ? *options : MatmulBenchOptions{};
}

struct BadMatmul {
  std::string name;
  std::vector<std::string> words;
  std::string text;  // the message
  BenchMachine machine = kEightGpus;

  friend void PrintTo(const BadMatmul& of, std::ostream* out) { *out << of.name; }
};

class MatmulRefused : public testing::TestWithParam<BadMatmul> {};

TEST_P(MatmulRefused, WithAMessageThatHelps) {
  const auto options = parse_matmul(GetParam().words, GetParam().machine);
  ASSERT_FALSE(options.is_ok());
  EXPECT_EQ(options.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(options.status().message(), GetParam().text);
}

const BadMatmul kBadMatmuls[] = {
    {"no_rows", {"--m", "8,0"}, "--m: 0 is not between 1 and 1048576"},
    {"too_many_columns", {"--n", "1048577"}, "--n: 1048577 is not between 1 and 1048576"},
    {"no_number", {"--k", "8k"}, "--k: '8k' is not a whole number"},
    {"no_weights", {"--weights", "1792"}, "--weights: '1792' is not NxK, such as 1792x4096"},
    {"half_weights", {"--weights", "1792x"}, "--weights: '' is not a whole number"},
    {"weights_and_n",
     {"--weights", "8x8", "--n", "8"},
     "--weights gives n and k; leave --n and --k out"},
    {"preset_and_k",
     {"--preset", "recipes", "--k", "8"},
     "--preset has its own --n, --k and --weights; only --m can be given with it"},
    {"unknown_preset",
     {"--preset", "llama3"},
     "unknown --preset 'llama3'; did you mean 'llama3-8b'? Known are recipes, llama3-8b, "
     "llama3-70b, llama3-405b"},
    {"unknown_type", {"--dtype", "bf16,int8"}, "--dtype int8: a matmul is of fp16, bf16 or fp32"},
    {"unknown_algorithm",
     {"--algorithms", "own,cublas"},
     "unknown --algorithms 'cublas'; did you mean 'cublaslt'? Known are auto, own, cublaslt, "
     "plain, host"},
    {"own_on_the_host",
     {"--algorithms", "own"},
     "--algorithms own: not available on the host backend",
     kHostOnly},
    {"host_on_cuda",
     {"--algorithms", "host"},
     "--algorithms host: not available on the cuda backend"},
    {"unknown_tile",
     {"--tile", "64x64"},
     "unknown --tile '64x64'; known are 128x256, 256x128, 128x240, 128x224, 128x208, 128x192, "
     "128x176, 128x160, 128x144, 128x128, 128x112"},
    {"tile_of_none",
     {"--tile", "128x128", "--algorithms", "auto"},
     "--tile is of the own kernel; give --algorithms own"},
    {"tune_of_none", {"--tune", "on"}, "--tune on changes what auto uses; give --algorithms auto"},
    {"tune_on_the_host",
     {"--tune", "on", "--algorithms", "auto"},
     "--tune on: on the host backend there is nothing to choose from",
     kHostOnly},
    {"unknown_tune", {"--tune", "yes"}, "unknown --tune 'yes'; known are on, off"},
    {"many_products", {"--products", "9"}, "--products: 9 is not between 1 and 8"},
    {"long_warm_up", {"--seconds", "601"}, "--seconds: 601 is not between 0 and 600"},
    {"append_to_nothing", {"--append"}, "--append needs --output FILE"},
};
INSTANTIATE_TEST_SUITE_P(Bad, MatmulRefused, testing::ValuesIn(kBadMatmuls),
                         [](const auto& parameter) { return parameter.param.name; });

TEST(MatmulBenchOptions, AnUnknownLayoutIsRefused) {
  const auto options = parse_matmul({"--layout", "row,diagonal"}, kEightGpus);
  ASSERT_FALSE(options.is_ok());
  EXPECT_EQ(options.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(options.status().message(), HasSubstr("'diagonal'"));
}

TEST(MatmulBenchOptions, DefaultsAreOfTheBackend) {
  const MatmulBenchOptions cuda = parsed_matmul({}, kEightGpus);
  EXPECT_THAT(cuda.shapes, ElementsAre(MatmulExtents{8192, 8192, 8192}));
  EXPECT_THAT(cuda.dtypes, ElementsAre(DataType::kBfloat16));
  EXPECT_THAT(cuda.bench.algorithms, ElementsAre("own", "cublaslt"));
  EXPECT_THAT(cuda.tiles, ElementsAre(""));
  EXPECT_EQ(cuda.bench.iterations, 40);
  EXPECT_EQ(cuda.seconds, 3);
  EXPECT_EQ(cuda.bench.mode, Mode::kGraph);
  const MatmulBenchOptions host = parsed_matmul({}, kHostOnly);
  EXPECT_THAT(host.shapes, ElementsAre(MatmulExtents{256, 256, 256}));
  EXPECT_THAT(host.dtypes, ElementsAre(DataType::kFloat32));
  EXPECT_THAT(host.bench.algorithms, ElementsAre("host"));
  EXPECT_EQ(host.seconds, 0);
}

TEST(MatmulBenchOptions, TuneIsOffUnlessAskedFor) {
  EXPECT_FALSE(parsed_matmul({"--algorithms", "auto"}, kEightGpus).tune);
  EXPECT_FALSE(parsed_matmul({"--tune", "off"}, kEightGpus).tune);
  EXPECT_TRUE(parsed_matmul({"--algorithms", "own,auto", "--tune", "on"}, kEightGpus).tune);
}

TEST(MatmulBenchOptions, ListsMultiplyOutAndShapesComeOnce) {
  EXPECT_THAT(parsed_matmul({"--m", "1,2,1", "--n", "3,4", "--k", "5"}, kEightGpus).shapes,
              ElementsAre(MatmulExtents{1, 3, 5}, MatmulExtents{2, 3, 5}, MatmulExtents{1, 4, 5},
                          MatmulExtents{2, 4, 5}));
  EXPECT_THAT(parsed_matmul({"--m", "7", "--weights", "1792x4096,8x9"}, kEightGpus).shapes,
              ElementsAre(MatmulExtents{7, 1792, 4096}, MatmulExtents{7, 8, 9}));
}

TEST(MatmulBenchOptions, PresetsHaveTheirShapes) {
  const auto recipes = parsed_matmul({"--preset", "recipes"}, kEightGpus).shapes;
  ASSERT_EQ(recipes.size(), 10u);
  EXPECT_EQ(recipes.front(), (MatmulExtents{4096, 1792, 4096}));
  EXPECT_EQ(recipes.back(), (MatmulExtents{32768, 8192, 16384}));
  // With rows of one's own it is its weights.
  EXPECT_THAT(parsed_matmul({"--preset", "recipes", "--m", "7"}, kEightGpus).shapes,
              ElementsAre(MatmulExtents{7, 1792, 4096}, MatmulExtents{7, 3584, 8192},
                          MatmulExtents{7, 6656, 16384}));
  EXPECT_THAT(parsed_matmul({"--preset", "llama3-8b", "--m", "64"}, kEightGpus).shapes,
              ElementsAre(MatmulExtents{64, 768, 4096}, MatmulExtents{64, 4096, 512},
                          MatmulExtents{64, 3584, 4096}, MatmulExtents{64, 4096, 1792}));
  EXPECT_THAT(parsed_matmul({"--preset", "llama3-70b", "--m", "64"}, kEightGpus).shapes,
              ElementsAre(MatmulExtents{64, 1280, 8192}, MatmulExtents{64, 8192, 1024},
                          MatmulExtents{64, 7168, 8192}, MatmulExtents{64, 8192, 3584}));
  EXPECT_THAT(parsed_matmul({"--preset", "llama3-405b", "--m", "64"}, kEightGpus).shapes,
              ElementsAre(MatmulExtents{64, 2304, 16384}, MatmulExtents{64, 16384, 2048},
                          MatmulExtents{64, 13312, 16384}, MatmulExtents{64, 16384, 6656}));
  EXPECT_EQ(parsed_matmul({"--preset", "recipes,llama3-8b"}, kEightGpus).shapes.size(), 30u);
}

TEST(MatmulBenchOptions, NamesOfAlgorithmsAndTilesComeOnce) {
  EXPECT_THAT(parsed_matmul({"--algorithms", "own_matmul,auto,own"}, kEightGpus).bench.algorithms,
              ElementsAre("own", "auto"));
  EXPECT_THAT(parsed_matmul({"--tile", "128x128,all"}, kEightGpus).tiles,
              ElementsAre("128x128", "128x256", "256x128", "128x240", "128x224", "128x208",
                          "128x192", "128x176", "128x160", "128x144", "128x112"));
  EXPECT_THAT(parsed_matmul({"--layout", "column,row"}, kEightGpus).layouts,
              ElementsAre(MatrixLayout::kColumnMajor, MatrixLayout::kRowMajor));
}

}  // namespace
}  // namespace tutti::cli
