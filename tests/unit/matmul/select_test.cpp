#include "matmul/select.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "some_problem.hpp"
#include "support/check.hpp"

namespace tutti {
namespace {

using test::problem_of;
using test::take;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

MatmulMachine hopper() {
  return {.backend = Backend::kCuda, .compute = 90, .multiprocessors = 132, .own_kernels = true};
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
  EXPECT_EQ(config_text(selected.tiling, 8192),
            "128x256x64, from row 6656 128x224x64, cluster 2x1, 4 stages");
  EXPECT_EQ(selected.why,
            "own_matmul with 128x256, then 128x224, fills 99.3 % of its waves and would use 94.8 % "
            "of the tensor cores; 95.5 % and 85.5 % suffice");
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
  EXPECT_EQ(decode.tiling, MatmulTiling{});
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
            "unknown tile '64x64'; known are 128x256, 256x128, 128x240, 128x224, 128x208, "
            "128x192, 128x176, 128x160, 128x144, 128x128, 128x112");
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
  EXPECT_THAT(text,
              StartsWith("matmul: M 4096, N 1792, K 4096, bf16, B row-major, aligned to 256 "
                         "bytes, on a GPU of compute capability 9.0 with 132 SMs\n"
                         "plan: own_matmul, 128x192x64, from row 3328 128x112x64, cluster "
                         "2x1, 5 stages: the call names it\n"
                         "  * own_matmul       can run it\n"
                         "    cublaslt_matmul  can run it: cuBLASLt 13.0.2\n"
                         "    plain_matmul     can run it; selected only if no other can\n"
                         "    host_matmul      cannot run it: the matrices are on a GPU\n"
                         "own_matmul's tiles, predicted at 1400 MHz:\n"
                         "    tile     then                   tiles   waves     fill        time"
                         "  TFLOP/s\n"));
  EXPECT_THAT(text, HasSubstr("\n    256x128                           224       2   84.8 %"));
  EXPECT_THAT(text, HasSubstr("\n  * 128x192  128x112 from 3328        356       3   87.6 %"));
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
