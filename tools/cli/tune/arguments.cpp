#include "tune/arguments.hpp"

#include "bench/arguments.hpp"

namespace tutti::cli {
namespace {

constexpr const char* kExamples =
    "  tutti tune\n"
    "  tutti tune all_gather --ranks 8 --seconds 120\n"
    "  tutti tune all_reduce --backend host --bytes 64K --output table.json --resume\n";

}  // namespace

void add_tune_options(CLI::App& tune, TuneArguments& a) {
  tune.add_option("collective", a.bench.collective,
                  "Any collective of `tutti bench` except barrier, which has no size")
      ->type_name("COLLECTIVE")
      ->default_str("all_reduce");
  add_ranks(tune, a.bench.ranks, "2 to all GPUs; 2 on the host");
  add_backend(tune, a.bench.backend);
  add_sweep_options(tune, a.bench);
  add_rows(tune, a.bench.rows, a.bench.hidden, true);
  tune.option_defaults()->group("Tuning");
  tune.add_option("--buffers", a.bench.buffers,
                  "Kind of memory that the messages are in: an entry is for that kind")
      ->type_name("symmetric|plain")
      ->default_str("symmetric");
  tune.add_option("--algorithms", a.bench.algorithms,
                  "all, or names of the candidates: one_shot,two_shot,nccl")
      ->type_name("ALGORITHM[,...]")
      ->default_str("all");
  tune.add_option("--seconds", a.seconds, "Time budget for each number of ranks")
      ->type_name("N")
      ->default_str("60");
  tune.add_option("--output", a.bench.output, "Tuning table to write")
      ->type_name("FILE")
      ->default_str("the value of TUTTI_TUNING_CACHE");
  tune.add_flag("--resume", a.resume, "Skip sizes that the table already has for this machine");
  add_rank_options(tune, a.bench, kStartsRanks);
  tune.add_option("--without", a.without)->group("");
  tune.footer(kExamples);
}

}  // namespace tutti::cli
