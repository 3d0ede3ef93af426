#include "bench/overlap/arguments.hpp"

#include "bench/arguments.hpp"

namespace tutti::cli {

void add_overlap_options(CLI::App& overlap, OverlapArguments& a) {
  overlap.add_option("-g,--ranks", a.bench.ranks,
                     "Numbers of ranks: 2,4,8 (default: all GPUs; 2 on the host)");
  overlap.add_option("--backend", a.bench.backend, "auto, host or cuda");
  overlap.add_option("--m", a.m, "Rows of A and C: 8192 (512 on the host)");
  overlap.add_option("--n", a.n, "Columns of B and C: 8192 (512 on the host)");
  overlap.add_option("--k", a.k, "Columns of A, rows of B: 8192 (512 on the host)");
  overlap.add_option("--ag-mb", a.ag_mb, "MiB that each rank puts in: 64 (4 on the host)");
  overlap.add_option("-d,--dtype", a.bench.dtype, "fp16, bf16 or fp32: fp16 (fp32 on the host)");
  overlap.add_flag("--tf32", a.tf32, "Factors of fp32 may be rounded to TF32");
  overlap.add_flag("--dependent", a.dependent,
                   "Gather A, m / ranks rows from each rank, then multiply it");
  overlap.add_option("--modes", a.modes, "Of matmul,all_gather,sequential,overlap: all");
  overlap.add_option(
      "--compute", a.compute,
      "Beside the all_gather: matmul, or arithmetic that touches no memory (matmul)");
  overlap.add_flag("--in-place", a.bench.in_place, "What a rank puts in lies where it is gathered");
  overlap.add_option("--pause", a.pause, "Milliseconds of rest before each sample: 0");
  overlap.add_flag("--clocks", a.clocks, "Measure the clock of the multiprocessors, too");
  overlap.add_option("--algorithms", a.bench.algorithms,
                     "Of the all_gather: auto, all, or names: copy_engine,nccl (auto)");
  overlap.add_option("--buffers", a.bench.buffers, "symmetric, registered or plain");
  overlap.add_option("-n,--iterations", a.bench.iterations, "Samples: 200 (20 on the host)");
  overlap.add_option("-w,--warmup", a.bench.warmup, "Samples that do not count: 50 (5)");
  overlap.add_option("-c,--check", a.bench.check, "Check results: on or off");
  overlap.add_option("--format", a.bench.format, "What is printed: table, markdown or json");
  overlap.add_option("--output", a.bench.output,
                     "Write a file, too, in the format of its extension");
  overlap.add_flag("--append", a.bench.append, "Keep the rows of FILE that are not measured again");
  add_rank_options(overlap, a.bench);
}

}  // namespace tutti::cli
