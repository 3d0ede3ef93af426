#include "matmul/select.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "support/check.hpp"

namespace tutti {
namespace {

using test::take;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

// bf16, without gaps; several values of `n` are several products.
MatmulProblem problem_of(std::size_t m, const std::vector<std::size_t>& n, std::size_t k) {
  MatmulProblem problem{.m = m, .k = k, .lda = k};
  for (const std::size_t columns : n) {
    problem.product[static_cast<std::size_t>(problem.products++)] = {
        .n = columns, .ldb = columns, .ldc = columns};
  }
  return problem;
}

MatmulMachine hopper() {
  return {.backend = Backend::kCuda, .compute = 90, .multiprocessors = 132, .own_kernels = true};
}

const MatmulTile& tile_named(std::string_view name) {
  for (const MatmulTile& tile : kMatmulTiles) {
    if (tile.name == name) return tile;
  }
  ADD_FAILURE() << name;
  return kMatmulTiles.front();
}

TEST(MatmulForecast, CountsTilesAndWaves) {
  struct Expected {
    const char* tile;
    long long tiles, waves;
  };
  const auto expect = [](const MatmulProblem& problem, const std::vector<Expected>& all) {
    for (const Expected& each : all) {
      const MatmulForecast cast = forecast(tile_named(each.tile), problem, 132);
      EXPECT_EQ(cast.tiling.tile->name, each.tile);
      EXPECT_EQ(cast.tiles, each.tiles) << each.tile;
      EXPECT_EQ(cast.waves, each.waves) << each.tile;
    }
  };
  expect(problem_of(4096, {1792}, 4096), {{"128x256", 224, 2},
                                          {"256x128", 224, 2},
                                          {"128x224", 256, 2},
                                          {"128x208", 288, 3},
                                          {"128x192", 320, 3},
                                          {"128x128", 448, 4}});
  // Where one tile has all rows, a cluster is one block.
  expect(problem_of(1, {1792}, 4096), {{"128x256", 7, 1}, {"256x128", 14, 1}});
  // An odd last row of tiles has an empty partner in its cluster.
  expect(problem_of(300, {257}, 64), {{"128x256", 8, 1}, {"256x128", 6, 1}});
  // Products have tiles of their own.
  expect(problem_of(256, {100, 300}, 64), {{"128x256", 2 + 4, 1}, {"128x128", 2 + 6, 1}});
}

TEST(MatmulForecast, FillIsTheUsefulPartOfTheWaves) {
  const MatmulProblem whole = problem_of(132 * 128, {256}, 64);
  EXPECT_DOUBLE_EQ(forecast(tile_named("128x256"), whole, 132).fill, 1.0);
  EXPECT_DOUBLE_EQ(forecast(tile_named("128x256"), problem_of(132 * 128, {128}, 32), 132).fill,
                   0.25);
  EXPECT_DOUBLE_EQ(forecast(tile_named("128x256"), problem_of(66 * 128, {256}, 64), 132).fill, 0.5);
  // Clusters of two use an even number of SMs.
  EXPECT_DOUBLE_EQ(forecast(tile_named("128x256"), whole, 133).fill, 1.0);
}

TEST(MatmulForecast, TimeGrowsWithWavesAndK) {
  const MatmulTile& tile = tile_named("128x256");
  const auto time = [&](std::size_t m, std::size_t k) {
    return forecast(tile, problem_of(m, {256}, k), 132).microseconds;
  };
  constexpr std::size_t kWave = 132 * 128;
  // What a launch costs is paid once.
  EXPECT_GT(2 * time(kWave, 4096), time(2 * kWave, 4096));
  EXPECT_NEAR(time(3 * kWave, 4096) - time(2 * kWave, 4096),
              time(2 * kWave, 4096) - time(kWave, 4096), 1e-9);
  EXPECT_DOUBLE_EQ(time(kWave + 1, 4096), time(2 * kWave, 4096));
  EXPECT_DOUBLE_EQ(time(kWave, 129), time(kWave, 192));
  // What a tile costs besides its stages is paid once.
  EXPECT_GT(time(kWave, 64), 0.5 * time(kWave, 128));
  EXPECT_NEAR(time(kWave, 192) - time(kWave, 128), time(kWave, 128) - time(kWave, 64), 1e-9);
}

std::string reason(const MatmulProblem& problem, const MatmulMachine& machine) {
  return why_not(MatmulAlgorithm::kOwn, problem, machine);
}

TEST(MatmulSelect, KnowsWhatExcludesTheOwnKernel) {
  const MatmulProblem good = problem_of(512, {512}, 512);
  EXPECT_EQ(reason(good, hopper()), "");
  EXPECT_EQ(reason(good, {}), "the matrices are on the host");
  MatmulMachine machine = hopper();
  machine.compute = 100;
  EXPECT_EQ(reason(good, machine),
            "it runs on Hopper (compute capability 9.0), and this GPU has 10.0");
  machine = hopper();
  machine.own_kernels = false;
  EXPECT_EQ(reason(good, machine), "this build was not compiled for architecture 90a");
  MatmulProblem problem = good;
  problem.dtype = DataType::kFloat32;
  EXPECT_EQ(reason(problem, hopper()), "it multiplies bf16 and fp16, not fp32");
  EXPECT_EQ(reason(problem_of(512, {512}, 0), hopper()), "K is 0, so nothing is multiplied");
  problem = good;
  problem.alignment = 8;
  EXPECT_THAT(reason(problem, hopper()),
              AllOf(StartsWith("TMA needs addresses and leading dimensions that are multiples of "
                               "16 bytes"),
                    HasSubstr("multiples of 8")));
  problem.alignment = 16;
  EXPECT_EQ(reason(problem, hopper()), "");
  constexpr std::size_t kMost = 2147483136;
  EXPECT_EQ(reason(problem_of(kMost, {512}, 512), hopper()), "");
  EXPECT_EQ(reason(problem_of(kMost + 1, {512}, 512), hopper()),
            "it takes at most 2147483136 rows and columns");
  EXPECT_EQ(reason(problem_of(512, {512, kMost + 1}, 512), hopper()),
            "it takes at most 2147483136 rows and columns");
  problem = good;
  problem.product[0].ldc = std::size_t{1} << 39;
  EXPECT_EQ(reason(problem, hopper()), "TMA takes leading dimensions of less than 2^40 bytes");
}

SelectedMatmul automatic(const MatmulProblem& problem, const MatmulMachine& machine) {
  return take(select(problem, machine, {}));
}

TEST(MatmulSelect, TakesTheOwnKernelWhereItsTilesFillTheGpu) {
  const SelectedMatmul selected = automatic(problem_of(8192, {8192}, 8192), hopper());
  EXPECT_EQ(selected.algorithm, MatmulAlgorithm::kOwn);
  EXPECT_EQ(selected.tiling.tile->name, "128x192");
  EXPECT_EQ(selected.why,
            "own_matmul's fastest tile, 128x192, fills 98.5 % of its waves and would use 94.6 % of "
            "the tensor cores; 95.5 % and 85.5 % suffice");
}

// Shapes of results/h100x1/matmul.json that are close to the rule's limits on both sides.
TEST(MatmulSelect, TakesTheOwnKernelWhereItWasMeasuredToBeFaster) {
  const auto is_own = [](std::size_t m, std::size_t n, std::size_t k) {
    MatmulProblem problem = problem_of(m, {n}, k);
    problem.b_layout = MatrixLayout::kColumnMajor;
    return automatic(problem, hopper()).algorithm == MatmulAlgorithm::kOwn;
  };
  EXPECT_TRUE(is_own(512, 6656, 16384));    // 1.049 of cuBLASLt's speed
  EXPECT_TRUE(is_own(4096, 1792, 4096));    // 1.010
  EXPECT_TRUE(is_own(2048, 3584, 8192));    // 1.004
  EXPECT_FALSE(is_own(1000, 3584, 8192));   // 0.964
  EXPECT_FALSE(is_own(1000, 6656, 16384));  // 0.952
  EXPECT_FALSE(is_own(2048, 1792, 4096));   // 0.936
}

TEST(MatmulSelect, LeavesTheRestToCublasLt) {
  const SelectedMatmul decode = automatic(problem_of(7, {4096}, 4096), hopper());
  EXPECT_EQ(decode.algorithm, MatmulAlgorithm::kCublasLt);
  EXPECT_EQ(decode.tile, nullptr);
  EXPECT_THAT(decode.why, StartsWith("M is 7, and own_matmul is selected from "));
  const SelectedMatmul small = automatic(problem_of(512, {256}, 4096), hopper());
  EXPECT_EQ(small.algorithm, MatmulAlgorithm::kCublasLt);
  EXPECT_THAT(small.why, HasSubstr("are required"));
  MatmulProblem problem = problem_of(8192, {8192}, 8192);
  problem.alignment = 2;
  const SelectedMatmul odd = automatic(problem, hopper());
  EXPECT_EQ(odd.algorithm, MatmulAlgorithm::kCublasLt);
  EXPECT_THAT(odd.why, StartsWith("own_matmul: TMA needs"));
}

TEST(MatmulSelect, WithoutCublasLtTheOwnKernelTakesAllThatItCan) {
  MatmulMachine machine = hopper();
  machine.why_no_cublas_lt = "not found";
  const SelectedMatmul decode = automatic(problem_of(7, {4096}, 4096), machine);
  EXPECT_EQ(decode.algorithm, MatmulAlgorithm::kOwn);
  EXPECT_EQ(decode.why, "cublaslt_matmul: not found");
  machine.own_kernels = false;
  const SelectedMatmul plain = automatic(problem_of(7, {4096}, 4096), machine);
  EXPECT_EQ(plain.algorithm, MatmulAlgorithm::kPlain);
  EXPECT_EQ(plain.why,
            "own_matmul: this build was not compiled for architecture 90a; cublaslt_matmul: not "
            "found");
}

TEST(MatmulSelect, WithoutKThePlainKernelFills) {
  EXPECT_EQ(automatic(problem_of(8192, {8192}, 0), hopper()).algorithm, MatmulAlgorithm::kPlain);
  EXPECT_EQ(automatic(problem_of(8192, {8192}, 0), {}).algorithm, MatmulAlgorithm::kHost);
}

TEST(MatmulSelect, TakesWhatTheCallNames) {
  const MatmulProblem problem = problem_of(7, {4096}, 4096);
  for (const char* name : {"own_matmul", "cublaslt_matmul", "plain_matmul"}) {
    const SelectedMatmul selected =
        take(select(problem, hopper(), take(parse({.algorithm = name, .tile = {}}))));
    EXPECT_EQ(to_string(selected.algorithm), name);
    EXPECT_EQ(selected.why, "the call names it");
  }
  const ForcedMatmul tile = take(parse({.algorithm = {}, .tile = "128x192"}));
  const SelectedMatmul selected = take(select(problem, hopper(), tile));
  EXPECT_EQ(selected.algorithm, MatmulAlgorithm::kOwn);
  EXPECT_EQ(config_text(selected.tiling, 4096), "128x192x64, cluster 2x1, 5 stages");
  const Status host =
      select(problem, hopper(), take(parse({.algorithm = "host_matmul", .tile = {}}))).status();
  EXPECT_EQ(host.code(), StatusCode::kUnsupported);
  EXPECT_EQ(host.message(), "host_matmul: the matrices are on a GPU");
  EXPECT_EQ(select(problem, {}, tile).status().message(),
            "own_matmul: the matrices are on the host");
}

TEST(MatmulSelect, UnknownNamesListTheKnownOnes) {
  const Status algorithm = parse({.algorithm = "own_matmu", .tile = {}}).status();
  EXPECT_EQ(algorithm.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(algorithm.message(),
            "unknown algorithm of a matmul 'own_matmu'; did you mean 'own_matmul'? Known are "
            "own_matmul, cublaslt_matmul, plain_matmul, host_matmul");
  EXPECT_EQ(parse({.algorithm = {}, .tile = "64x64"}).status().message(),
            "unknown tile '64x64'; known are 128x256, 256x128, 128x224, 128x208, 128x192, "
            "128x128");
  EXPECT_EQ(parse({.algorithm = "cublaslt_matmul", .tile = "128x128"}).status().message(),
            "tile '128x128': cublaslt_matmul has no tiles; own_matmul has");
}

TEST(MatmulExplain, ShowsTilesReasonsAndThePlan) {
  MatmulMachine machine = hopper();
  machine.cublas_lt = "cuBLASLt 13.0.2";
  const MatmulProblem problem = problem_of(4096, {1792}, 4096);
  const std::string text =
      explain(problem, machine,
              select(problem, machine, take(parse({.algorithm = {}, .tile = "128x192"}))));
  EXPECT_THAT(text, StartsWith("matmul: M 4096, N 1792, K 4096, bf16, B row-major, aligned to 256 "
                               "bytes, on a GPU of compute capability 9.0 with 132 SMs\n"
                               "plan: own_matmul, 128x192x64, cluster 2x1, 5 stages: the call "
                               "names it\n"
                               "  * own_matmul       can run it\n"
                               "    cublaslt_matmul  can run it: cuBLASLt 13.0.2\n"
                               "    plain_matmul     can run it; selected only if no other can\n"
                               "    host_matmul      cannot run it: the matrices are on a GPU\n"
                               "own_matmul's tiles, predicted at 1400 MHz:\n"
                               "    tile        tiles   waves     fill        time  TFLOP/s\n"));
  EXPECT_THAT(text, HasSubstr("\n    128x256       224       2   84.8 %"));
  EXPECT_THAT(text, HasSubstr("\n  * 128x192       320       3   75.4 %"));
}

TEST(MatmulExplain, OnTheHostThereAreNoTiles) {
  MatmulProblem problem = problem_of(2, {3, 4}, 5);
  problem.product[1].bias = true;
  EXPECT_EQ(explain(problem, {.host_library = "a plain loop"}, select(problem, {}, {})),
            "matmul: M 2, N 3 + 4, K 5, bf16, B row-major, bias, aligned to 256 bytes, on the "
            "host\n"
            "plan: host_matmul: the matrices are on the host\n"
            "    own_matmul       cannot run it: the matrices are on the host\n"
            "    cublaslt_matmul  cannot run it: the matrices are on the host\n"
            "    plain_matmul     cannot run it: the matrices are on the host\n"
            "  * host_matmul      can run it: a plain loop\n");
}

TEST(MatmulExplain, SaysWhyThereIsNoPlan) {
  const MatmulProblem problem = problem_of(2, {3}, 5);
  const std::string text =
      explain(problem, hopper(),
              select(problem, hopper(), take(parse({.algorithm = "host_matmul", .tile = {}}))));
  EXPECT_THAT(text, HasSubstr("\nno plan: host_matmul: the matrices are on a GPU\n"));
}

}  // namespace
}  // namespace tutti
