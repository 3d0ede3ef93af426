#include "tune/arguments.hpp"

#include "bench/arguments.hpp"

namespace tutti::cli {

void add_tune_options(CLI::App& tune, TuneArguments& a) {
  tune.add_option(
      "collective", a.bench.collective,
      "all_reduce (the default), or any other that has sizes, as `tutti bench` takes it");
  tune.add_option("-g,--ranks", a.bench.ranks,
                  "Numbers of ranks: 2,4,8 (default: 2 to all GPUs; 2 on the host)");
  add_sweep_options(tune, a.bench);
  tune.add_option("--rows", a.bench.rows, "Messages of rows x hidden elements: 32,64");
  tune.add_option("--hidden", a.bench.hidden, "Elements per row: 8192");
  tune.add_option("--algorithms", a.bench.algorithms, "all, or names: one_shot,two_shot,nccl");
  tune.add_option("--output", a.bench.output, "Table that is written: TUTTI_TUNING_CACHE");
  tune.add_flag("--resume", a.resume, "Leave out sizes that the table has for this machine");
  tune.add_option("--seconds", a.seconds,
                  "A number of ranks takes so long, with fewer samples: 60");
  add_rank_options(tune, a.bench);
  tune.add_option("--without", a.without)->group("");
}

}  // namespace tutti::cli
