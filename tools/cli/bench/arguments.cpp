#include "bench/arguments.hpp"

namespace tutti::cli {
namespace {

void add_measuring(CLI::App& bench, BenchArguments& a) {
  bench.add_option(
      "collective", a.collective,
      "all_reduce, all_reduce_residual_rms_norm, all_gather, reduce_scatter, all_to_all, "
      "broadcast, reduce, gather, scatter, send_recv, all_gather_v, reduce_scatter_v, all_to_all_v "
      "or barrier");
  bench.add_option("-g,--ranks", a.ranks,
                   "Numbers of ranks: 2,4,8 (default: all GPUs; 2 on the host)");
  add_sweep_options(bench, a);
  bench.add_option("--rows", a.rows, "Messages of rows x hidden elements: 32,64");
  bench.add_option("--hidden", a.hidden, "Elements per row: 8192");
  bench.add_flag("--split-rows", a.split_rows,
                 "reduce_scatter: a rank gets its columns of every row");
  bench.add_option("-r,--root", a.root, "Of broadcast, reduce, gather and scatter: 0");
  bench.add_option("-o,--op", a.op, "Reduction: sum, prod, min, max, avg, premulsum");
  bench.add_option("--algorithms", a.algorithms, "auto, all, or names: one_shot,two_shot,nccl");
  bench.add_option("--sm-budget", a.sm_budget, "Multiprocessors at most; 0: copy engines alone");
  bench.add_option("--buffers", a.buffers, "symmetric, registered or plain");
  bench.add_option("--mode", a.mode, "graph or eager (the host is eager)");
  bench.add_option("--graph-operations", a.graph_operations, "Operations per sample: 10");
  bench.add_option("-G,--cudagraph", a.cudagraph,
                   "N > 0: --mode graph --graph-operations N; 0: --mode eager");
  bench.add_flag("--chained", a.chained, "Each operation reads what the one before wrote");
  bench.add_option("--cache", a.cache, "hot or cold");
  bench.add_flag("--in-place", a.in_place, "Measure in place, too");
  bench.add_option("-n,--iterations", a.iterations, "Samples: 50");
  bench.add_option("-w,--warmup", a.warmup, "Samples that do not count: 5");
  bench.add_option("-c,--check", a.check, "Compare results exactly: on or off");
}

void add_results(CLI::App& bench, BenchArguments& a) {
  bench.add_option("--format", a.format, "What is printed: table, markdown, csv or json");
  bench.add_option("--output", a.output, "Write a file, too, in the format of its extension");
  bench.add_option("--trace", a.trace, "Write each rank's last 1024 operations for Perfetto");
  bench.add_flag("--append", a.append, "Keep the rows of FILE that are not measured again");
  bench.add_flag("--repro", a.repro, "Print the command that repeats each row");
  add_rank_options(bench, a);
}

}  // namespace

void add_sweep_options(CLI::App& command, BenchArguments& a) {
  command.add_option("--backend", a.backend, "auto, host or cuda");
  command.add_option("-b,--min-bytes", a.min_bytes, "Smallest message: 1K");
  command.add_option("-e,--max-bytes", a.max_bytes, "Largest message: 64M (16M on the host)");
  command.add_option("-f,--factor", a.factor, "From one size to the next: 2");
  command.add_option("-i,--stepbytes", a.step, "Bytes from one size to the next, instead of -f");
  command.add_option("--bytes", a.bytes, "Messages instead of a sweep: 512K,1M");
  command.add_option("-d,--dtype", a.dtype, "Element type: bf16 (fp32 on the host)");
}

void add_rank_options(CLI::App& command, BenchArguments& a) {
  command.add_option("--launch", a.launch, "Ranks are processes or threads");
  command.add_option("--timeout-ms", a.timeout_ms, "Every wait ends by then: 10000");
  command.add_option("--worker-fd", a.worker_fd)->group("");
  command.add_option("--inject", a.inject)->group("");
}

void add_bench_options(CLI::App& bench, BenchArguments& arguments) {
  add_measuring(bench, arguments);
  add_results(bench, arguments);
}

}  // namespace tutti::cli
