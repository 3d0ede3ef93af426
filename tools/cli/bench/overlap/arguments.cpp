#include "bench/overlap/arguments.hpp"

#include "bench/arguments.hpp"

namespace tutti::cli {
namespace {

constexpr const char* kExamples =
    "  tutti bench overlap\n"
    "  tutti bench overlap --ranks 2 --m 4096 --n 4096 --k 4096 --algorithms copy_engine,nccl\n"
    "  tutti bench overlap --backend host -n 5 -w 1\n";

void add_matmul(CLI::App& overlap, OverlapArguments& a) {
  overlap.option_defaults()->group("Matmul C = A x B");
  overlap.add_option("--m", a.m, "Rows of A and C")
      ->type_name("N")
      ->default_str("8192; 512 on the host");
  overlap.add_option("--n", a.n, "Columns of B and C")
      ->type_name("N")
      ->default_str("8192; 512 on the host");
  overlap.add_option("--k", a.k, "Columns of A, rows of B")
      ->type_name("N")
      ->default_str("8192; 512 on the host");
  overlap.add_option("-d,--dtype", a.bench.dtype, "Element type of the matrices")
      ->type_name("fp16|bf16|fp32")
      ->default_str("fp16; fp32 on the host");
  overlap.add_flag("--tf32", a.tf32, "Allow rounding fp32 inputs to TF32");
  overlap
      .add_option("--compute", a.compute,
                  "Computation next to the all_gather; arithmetic uses SMs but no memory")
      ->type_name("matmul|arithmetic")
      ->default_str("matmul");
}

void add_gather(CLI::App& overlap, OverlapArguments& a) {
  overlap.option_defaults()->group("All_gather");
  overlap.add_option("--ag-mb", a.ag_mb, "Input of each rank in MiB")
      ->type_name("N")
      ->default_str("64; 4 on the host");
  overlap.add_flag("--dependent", a.dependent,
                   "Gather A (m / ranks rows from each rank), then multiply it");
  overlap
      .add_option("--algorithms", a.bench.algorithms,
                  "auto (what a call would use), all, or names: copy_engine,nccl")
      ->type_name("ALGORITHM[,...]")
      ->default_str("auto");
  overlap.add_option("--buffers", a.bench.buffers, "Kind of memory that is gathered")
      ->type_name("symmetric|registered|plain")
      ->default_str("symmetric");
  overlap.add_flag("--in-place", a.bench.in_place, "The input of a rank is a part of its output");
}

}  // namespace

void add_overlap_options(CLI::App& overlap, OverlapArguments& a) {
  add_ranks(overlap, a.bench.ranks, "all GPUs; 2 on the host");
  add_backend(overlap, a.bench.backend);
  add_matmul(overlap, a);
  add_gather(overlap, a);
  overlap.option_defaults()->group("Sampling");
  overlap
      .add_option("--modes", a.modes,
                  "What to measure: each alone, one after the other, or concurrently")
      ->type_name("matmul|all_gather|sequential|overlap[,...]")
      ->default_str("all");
  overlap.add_option("--pause", a.pause, "Pause before each sample")
      ->type_name("MS")
      ->default_str("0");
  overlap.add_flag("--clocks", a.clocks, "Also measure the clock of the SMs");
  add_repetitions(overlap, a.bench, "200; 20 on the host", "50; 5 on the host");
  add_check(overlap, a.bench);
  overlap.option_defaults()->group("Results");
  overlap.add_option("--format", a.bench.format, "Format of standard output")
      ->type_name("table|markdown|json")
      ->default_str("table");
  add_file_options(overlap, a.bench);
  add_rank_options(overlap, a.bench);
  overlap.footer(kExamples);
}

}  // namespace tutti::cli
