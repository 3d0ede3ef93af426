#include "bench/one_sided/arguments.hpp"

#include "bench/arguments.hpp"

namespace tutti::cli {

void add_one_sided_options(CLI::App& command, OneSidedArguments& arguments) {
  BenchArguments& a = arguments.bench;
  add_ranks(command, a.ranks, "all GPUs; 2 on the host");
  add_backend(command, a.backend);
  add_sweep_options(command, a);
  command.add_option("--algorithms", a.algorithms, "What moves the bytes, or all")
      ->type_name("kernel|copy_engine|all[,...]")
      ->default_str("all");
  command.option_defaults()->group("Sampling");
  add_sample_options(command, a);
  command.option_defaults()->group("Results");
  command.add_option("--format", a.format, "Format of standard output")
      ->type_name("table|markdown|csv|json")
      ->default_str("table");
  add_file_options(command, a);
  add_rank_options(command, a);
  const std::string kind(to_string(arguments.kind));
  command.footer("  tutti bench " + kind + " --ranks 2\n  tutti bench " + kind +
                 " --backend host --bytes 64K,1M --format csv\n");
}

}  // namespace tutti::cli
