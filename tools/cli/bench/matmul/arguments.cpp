#include "bench/matmul/arguments.hpp"

#include <fmt/format.h>

#include "bench/arguments.hpp"
#include "matmul/tiles.hpp"

namespace tutti::cli {
namespace {

constexpr const char* kExamples =
    "  tutti bench matmul --preset recipes --algorithms own,cublaslt\n"
    "  tutti bench matmul --m 1,64,512 --weights 3584x8192 --algorithms auto,cublaslt --tune on\n"
    "  tutti bench matmul --m 1,64,4096 --weights 1792x4096,3584x8192 --layout column\n"
    "  tutti bench matmul --m 4096 --n 4096 --k 4096 --tile all --output "
    "results/h100x1/matmul.json\n"
    "  tutti bench matmul --backend host --m 256 --n 256 --k 256\n";

void add_shapes_of(CLI::App& matmul, MatmulArguments& a) {
  matmul.option_defaults()->group("Shapes of C = A x B, which multiply out");
  add_matmul_extents(matmul, a, "8192; 256 on the host");
  matmul.add_option("-d,--dtype", a.bench.dtype, "Element types, one after the other")
      ->type_name("bf16|fp16|fp32[,...]")
      ->default_str("bf16; fp32 on the host");
  matmul.add_option("--layout", a.layout, "Layouts of B, one after the other")
      ->type_name("row|column[,...]")
      ->default_str("row");
  matmul.add_flag("--bias", a.bias, "Add a bias to each row of C");
  matmul.add_option("--products", a.products, "Multiply one A by this many Bs")
      ->type_name("N")
      ->default_str("1");
}

void add_contenders(CLI::App& matmul, MatmulArguments& a) {
  matmul.option_defaults()->group("Algorithms");
  matmul
      .add_option("--algorithms", a.bench.algorithms,
                  "auto (what a call would use), the own kernel, the best of cuBLASLt's "
                  "heuristics, the plain kernel, or the host's")
      ->type_name("auto|own|cublaslt|plain|host[,...]")
      ->default_str("own,cublaslt; host on the host");
  matmul.add_option("--tile", a.tile, "Tiles that the own kernel must use")
      ->type_name(fmt::format("{}|all[,...]", fmt::join(matmul_tile_names(), "|")))
      ->default_str("chosen by shape");
  matmul.add_option("--tune", a.tune, "Call tune() for each shape before auto is measured")
      ->type_name("on|off")
      ->default_str("off");
}

}  // namespace

void add_matmul_extents(CLI::App& matmul, MatmulArguments& a, const char* otherwise) {
  matmul.add_option("--m", a.m, "Rows of A and C")->type_name("N[,...]")->default_str(otherwise);
  matmul.add_option("--n", a.n, "Columns of B and C")->type_name("N[,...]")->default_str(otherwise);
  matmul.add_option("--k", a.k, "Columns of A, rows of B")
      ->type_name("N[,...]")
      ->default_str(otherwise);
  matmul.add_option("--weights", a.weights, "Instead of --n and --k: extents of B, 1792x4096")
      ->type_name("NxK[,...]");
  matmul
      .add_option("--preset", a.preset,
                  "Shapes of a known set; the llama3 ones are the matmuls of a layer on one of 8 "
                  "tensor-parallel GPUs")
      ->type_name("recipes|llama3-8b|llama3-70b|llama3-405b[,...]");
}

void add_matmul_sampling(CLI::App& matmul, MatmulArguments& a, const MatmulSamplingTexts& texts) {
  matmul.option_defaults()->group("Sampling");
  add_repetitions(matmul, a.bench, texts.samples, texts.warmup);
  matmul.add_option("--seconds", a.seconds, "Run each shape this long first; clocks need about 3")
      ->type_name("N")
      ->default_str(texts.seconds);
  matmul.add_option("-c,--check", a.bench.check, "Compare samples of C with a sum in fp64")
      ->type_name("on|off")
      ->default_str("on");
}

void add_matmul_results(CLI::App& matmul, MatmulArguments& a) {
  matmul.option_defaults()->group("Results");
  matmul.add_option("--format", a.bench.format, "Format of standard output")
      ->type_name("table|markdown|csv|json")
      ->default_str("table");
  add_file_options(matmul, a.bench);
}

void add_matmul_options(CLI::App& matmul, MatmulArguments& a) {
  add_shapes_of(matmul, a);
  add_contenders(matmul, a);
  matmul.option_defaults()->group("Sampling");
  add_backend(matmul, a.bench.backend);
  add_matmul_sampling(matmul, a, {"40; 10 on the host", "4; 1 on the host", "3; 0 on the host"});
  add_matmul_results(matmul, a);
  matmul.add_option("--inject", a.bench.inject)->group("");
  matmul.footer(kExamples);
}

}  // namespace tutti::cli
