#include "bench/arguments.hpp"

namespace tutti::cli {
namespace {

constexpr const char* kExamples =
    "  tutti bench all_reduce\n"
    "  tutti bench all_reduce --ranks 2,4 -b 1K -e 1M --algorithms all\n"
    "  tutti bench all_gather --backend host --bytes 64K --check on --output times.json\n"
    "  tutti bench reduce_scatter --split-rows --rows 32,64 --hidden 8192\n";

void add_messages(CLI::App& bench, BenchArguments& a) {
  add_sweep_options(bench, a);
  add_rows(bench, a.rows, a.hidden, true);
  add_split_rows(bench, a.split_rows);
  bench.add_option("-r,--root", a.root, "Root of broadcast, reduce, gather and scatter")
      ->type_name("RANK")
      ->default_str("0");
  add_op(bench, a.op);
  bench.add_option("--buffers", a.buffers, "Kind of memory that the messages are in")
      ->type_name("symmetric|registered|plain")
      ->default_str("symmetric");
  bench.add_flag("--in-place", a.in_place, "Also measure in place");
}

void add_algorithms(CLI::App& bench, BenchArguments& a) {
  bench.option_defaults()->group("Algorithms");
  bench
      .add_option("--algorithms", a.algorithms,
                  "auto (what a call would use), all, or names: one_shot,two_shot,nccl")
      ->type_name("ALGORITHM[,...]")
      ->default_str("auto,nccl");
  add_sm_budget(bench, a.sm_budget);
}

void add_sampling(CLI::App& bench, BenchArguments& a) {
  bench.option_defaults()->group("Sampling");
  add_sample_options(bench, a);
  bench.add_flag("--chained", a.chained, "Each operation reads what the one before it wrote");
  bench
      .add_option("--cache", a.cache, "hot: reuse the same buffers; cold: different ones each time")
      ->type_name("hot|cold")
      ->default_str("hot");
}

void add_results(CLI::App& bench, BenchArguments& a) {
  bench.option_defaults()->group("Results");
  bench.add_option("--format", a.format, "Format of standard output")
      ->type_name("table|markdown|csv|json")
      ->default_str("table");
  add_file_options(bench, a);
  bench
      .add_option("--trace", a.trace,
                  "Also write the last 1024 operations of each rank, for ui.perfetto.dev")
      ->type_name("FILE");
  bench.add_flag("--repro", a.repro, "Print the command that repeats each measurement");
}

}  // namespace

void add_collective(CLI::App& command, std::string& collective) {
  command
      .add_option("collective", collective,
                  "all_reduce, all_reduce_residual_rms_norm, all_gather, reduce_scatter, "
                  "all_to_all, broadcast, reduce, gather, scatter, send_recv, all_gather_v, "
                  "reduce_scatter_v, all_to_all_v or barrier")
      ->type_name("COLLECTIVE");
}

void add_ranks(CLI::App& command, std::string& ranks, const char* otherwise) {
  command.option_defaults()->group("Ranks");
  command.add_option("-g,--ranks", ranks, "Numbers of ranks to measure with, one after the other")
      ->type_name("N[,...]")
      ->default_str(otherwise);
}

void add_backend(CLI::App& command, std::string& backend) {
  command.add_option("--backend", backend, "auto: GPUs if there are any, otherwise the host")
      ->type_name("auto|host|cuda")
      ->default_str("auto");
}

void add_sweep_options(CLI::App& command, BenchArguments& a) {
  command.option_defaults()->group("Messages");
  command.add_option("-b,--min-bytes", a.min_bytes, "Smallest message")
      ->type_name("BYTES")
      ->default_str("1K");
  command.add_option("-e,--max-bytes", a.max_bytes, "Largest message")
      ->type_name("BYTES")
      ->default_str("64M; 16M on the host");
  command.add_option("-f,--factor", a.factor, "Factor from one size to the next")
      ->type_name("N")
      ->default_str("2");
  command.add_option("-i,--stepbytes", a.step, "Instead of -f: bytes from one size to the next")
      ->type_name("BYTES");
  command.add_option("--bytes", a.bytes, "Measure these sizes instead of a sweep: 512K,1M")
      ->type_name("BYTES[,...]");
  command
      .add_option("-d,--dtype", a.dtype,
                  "Element type: fp64, fp32, fp16, bf16, fp8_e4m3, fp8_e5m2, int8 to uint64")
      ->type_name("DTYPE")
      ->default_str("bf16; fp32 on the host");
}

void add_rows(CLI::App& command, std::string& rows, std::string& hidden, bool several) {
  command.add_option("--rows", rows, "Instead of --bytes: messages of this many rows of --hidden")
      ->type_name(several ? "N[,...]" : "N");
  command.add_option("--hidden", hidden, "Elements of a row")->type_name("N");
}

void add_split_rows(CLI::App& command, bool& split_rows) {
  command.add_flag("--split-rows", split_rows,
                   "For reduce_scatter: each rank gets its columns of every row");
}

void add_op(CLI::App& command, std::string& op) {
  command.add_option("-o,--op", op, "Reduction: sum, prod, min, max, avg or premulsum")
      ->type_name("OP")
      ->default_str("sum");
}

void add_sm_budget(CLI::App& command, std::string& sm_budget) {
  command
      .add_option("--sm-budget", sm_budget, "SMs that an operation may use; 0: copy engines only")
      ->type_name("N")
      ->default_str("no limit");
}

void add_sample_options(CLI::App& command, BenchArguments& a) {
  command.add_option("--mode", a.mode, "Replay CUDA graphs, or call eagerly")
      ->type_name("graph|eager")
      ->default_str("graph; eager on the host");
  command.add_option("--graph-operations", a.graph_operations, "Operations per sample")
      ->type_name("N")
      ->default_str("10");
  command
      .add_option("-G,--cudagraph", a.cudagraph,
                  "N > 0: --mode graph --graph-operations N; 0: --mode eager")
      ->type_name("N");
  add_repetitions(command, a, "50", "5");
  add_check(command, a);
}

void add_repetitions(CLI::App& command, BenchArguments& a, const char* samples,
                     const char* warmup) {
  command.add_option("-n,--iterations", a.iterations, "Number of samples")
      ->type_name("N")
      ->default_str(samples);
  command.add_option("-w,--warmup", a.warmup, "Samples to discard first")
      ->type_name("N")
      ->default_str(warmup);
}

void add_check(CLI::App& command, BenchArguments& a) {
  command.add_option("-c,--check", a.check, "Compare results with an exact reference")
      ->type_name("on|off")
      ->default_str("on");
}

void add_file_options(CLI::App& command, BenchArguments& a) {
  command.add_option("--output", a.output, "Also write FILE, as .json, .csv or .md")
      ->type_name("FILE");
  command.add_flag("--append", a.append, "Keep results in FILE that are not measured again");
}

void add_rank_options(CLI::App& command, BenchArguments& a, const char* launch) {
  command.option_defaults()->group("Ranks");
  command.add_option("--launch", a.launch, "Start ranks as processes or as threads")
      ->type_name("processes|threads")
      ->default_str(launch);
  command.add_option("--timeout-ms", a.timeout_ms, "Timeout of every wait")
      ->type_name("MS")
      ->default_str("TUTTI_TIMEOUT_MS if it is set, otherwise 10000");
  command.add_option("--worker-fd", a.worker_fd)->group("");
  command.add_option("--inject", a.inject)->group("");
}

void add_bench_options(CLI::App& bench, BenchArguments& arguments) {
  add_collective(bench, arguments.collective);
  add_ranks(bench, arguments.ranks, "all GPUs; 2 on the host");
  add_backend(bench, arguments.backend);
  add_messages(bench, arguments);
  add_algorithms(bench, arguments);
  add_sampling(bench, arguments);
  add_results(bench, arguments);
  add_rank_options(bench, arguments);
  bench.footer(kExamples);
}

}  // namespace tutti::cli
