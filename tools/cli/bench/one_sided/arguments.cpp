#include "bench/one_sided/arguments.hpp"

#include "bench/arguments.hpp"

namespace tutti::cli {

void add_one_sided_options(CLI::App& command, OneSidedArguments& arguments) {
  BenchArguments& a = arguments.bench;
  command.add_option("-g,--ranks", a.ranks,
                     "Numbers of ranks: 2,4,8 (default: all GPUs; 2 on the host)");
  add_sweep_options(command, a);
  command.add_option("--algorithms", a.algorithms,
                     "What moves the bytes: all, or of kernel,copy_engine (the host: kernel)");
  command.add_option("--mode", a.mode, "graph or eager (the host is eager)");
  command.add_option("--graph-operations", a.graph_operations, "Operations per sample: 10");
  command.add_option("-G,--cudagraph", a.cudagraph,
                     "N > 0: --mode graph --graph-operations N; 0: --mode eager");
  command.add_option("-n,--iterations", a.iterations, "Samples: 50");
  command.add_option("-w,--warmup", a.warmup, "Samples that do not count: 5");
  command.add_option("-c,--check", a.check, "Compare results exactly: on or off");
  command.add_option("--format", a.format, "What is printed: table, markdown, csv or json");
  command.add_option("--output", a.output, "Write a file, too, in the format of its extension");
  command.add_flag("--append", a.append, "Keep the rows of FILE that are not measured again");
  add_rank_options(command, a);
}

}  // namespace tutti::cli
