#include "bench/all_gather_matmul/arguments.hpp"

#include <fmt/format.h>

#include "bench/arguments.hpp"
#include "bench/matmul/arguments.hpp"
#include "matmul/tiles.hpp"

namespace tutti::cli {
namespace {

constexpr const char* kGatedExamples =
    "  tutti bench all_gather_matmul --preset recipes --layout column\n"
    "  tutti bench all_gather_matmul --m 8192 --n 1792 --k 4096 --chunks 2 --arrival model\n"
    "  tutti bench all_gather_matmul --m 8192 --n 1792 --k 4096 --arrival trace:arrival.json\n";

void add_gathered_shapes(CLI::App& command, AllGatherMatmulArguments& a) {
  command.option_defaults()->group("Shapes of C = A x B, which multiply out");
  add_matmul_extents(command, a.matmul, "8192");
  command.add_option("-d,--dtype", a.matmul.bench.dtype, "Element types, one after the other")
      ->type_name("bf16|fp16[,...]")
      ->default_str("bf16");
  command.add_option("--layout", a.matmul.layout, "Layouts of B, one after the other")
      ->type_name("row|column[,...]")
      ->default_str("row");
}

void add_arrival(CLI::App& command, AllGatherMatmulArguments& a) {
  command.option_defaults()->group("Arrival");
  command
      .add_option("--ranks", a.ranks, "Shards of A, as of so many ranks; one is there beforehand")
      ->type_name("N")
      ->default_str("8, or the trace's");
  command.add_option("--chunks", a.chunks, "Chunks of a shard, each with a flag")
      ->type_name("N")
      ->default_str("1, or the trace's");
  command
      .add_option("--arrival", a.arrival,
                  "open: all flags are set beforehand; model: at the times of a modelled copy "
                  "engine; trace: at those of a file")
      ->type_name("open|model|trace:FILE")
      ->default_str("open");
}

void add_orders(CLI::App& command, AllGatherMatmulArguments& a) {
  command.option_defaults()->group("Algorithms");
  command
      .add_option("--algorithms", a.matmul.bench.algorithms,
                  "Orders of the tiles of the gated kernel; plain: the matmuls without a gate "
                  "alone, which always run")
      ->type_name("plain|gated|rotated|frontier|all[,...]")
      ->default_str("all");
  command.add_option("--tile", a.matmul.tile, "Tiles that the own kernel must use")
      ->type_name(fmt::format("{}|all[,...]", fmt::join(matmul_tile_names(), "|")))
      ->default_str("chosen by shape");
}

}  // namespace

void add_all_gather_matmul_options(CLI::App& command, AllGatherMatmulArguments& a) {
  add_gathered_shapes(command, a);
  add_arrival(command, a);
  add_orders(command, a);
  add_matmul_sampling(command, a.matmul, {"40", "4", "3"});
  add_matmul_results(command, a.matmul);
  command.footer(kGatedExamples);
}

}  // namespace tutti::cli
