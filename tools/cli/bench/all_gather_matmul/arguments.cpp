#include "bench/all_gather_matmul/arguments.hpp"

#include <fmt/format.h>

#include "bench/arguments.hpp"
#include "bench/matmul/arguments.hpp"
#include "matmul/tiles.hpp"

namespace tutti::cli {
namespace {

constexpr const char* kGatedExamples =
    "  tutti bench all_gather_matmul --gpus 2 --preset recipes --layout column\n"
    "  tutti bench all_gather_matmul --gpus 2 --m 8192 --n 1792 --k 4096 --protocol put\n"
    "  tutti bench all_gather_matmul --preset recipes --layout column\n"
    "  tutti bench all_gather_matmul --m 8192 --n 1792 --k 4096 --chunks 2 --arrival model\n"
    "  tutti bench all_gather_matmul --m 8192 --n 1792 --k 4096 --k-groups 16 --pullers 16 "
    "--arrival "
    "model\n"
    "  tutti bench all_gather_matmul --m 8192 --n 1792 --k 4096 --arrival trace:arrival.json\n";

void add_gathered_shapes(CLI::App& command, AllGatherMatmulArguments& a) {
  command.option_defaults()->group("Shapes of C = A x B, which multiply out");
  add_matmul_extents(command, a.matmul, "8192; 256 on the host");
  command.add_option("-d,--dtype", a.matmul.bench.dtype, "Element types, one after the other")
      ->type_name("bf16|fp16|fp32[,...]")
      ->default_str("bf16; fp32 on the host");
  command.add_option("--layout", a.matmul.layout, "Layouts of B, one after the other")
      ->type_name("row|column[,...]")
      ->default_str("row");
}

void add_arrival(CLI::App& command, AllGatherMatmulArguments& a) {
  command.option_defaults()->group("One GPU that acts for several");
  command
      .add_option("--ranks", a.ranks, "Shards of A, as of so many ranks; one is there beforehand")
      ->type_name("N")
      ->default_str("8, or the trace's");
  command.add_option("--chunks", a.chunks, "Chunks of a shard, each with a flag")
      ->type_name("N")
      ->default_str("1, or the trace's");
  command
      .add_option("--k-groups", a.k_groups,
                  "Groups of columns of a chunk, each with a flag; shards then arrive in groups "
                  "that are as high as a wave of tiles")
      ->type_name("N")
      ->default_str("1, or the trace's");
  command
      .add_option("--pullers", a.pullers,
                  "SMs that the gated kernel leaves to blocks which bring A; a modelled arrival "
                  "is then theirs. 0: copy engines bring it")
      ->type_name("N")
      ->default_str("0");
  command
      .add_option("--arrival", a.arrival,
                  "open: all flags are set beforehand; model: at the times of a modelled copy "
                  "engine, or of pullers; pull: pullers bring A from elsewhere on this GPU; trace: "
                  "at those of a file; host: A is copied from the host's memory. PCIe has about "
                  "1/7 of NVLink's bandwidth: 7 times the --n keeps the ratio of arrival to matmul")
      ->type_name("open|model|pull|trace:FILE|host")
      ->default_str("open");
}

void add_several_ranks(CLI::App& command, AllGatherMatmulArguments& a) {
  command.option_defaults()->group("Several ranks, each on a GPU of its own or on the host");
  command
      .add_option("-g,--gpus", a.gpus,
                  "Numbers of ranks to measure with, one after the other. Without this option, "
                  "--backend, --launch or a launcher: one GPU that acts for several")
      ->type_name("N[,...]")
      ->default_str("all GPUs; 2 on the host");
  add_backend(command, a.matmul.bench.backend);
  command.add_option("--protocol", a.protocol, "Of pipelines: who moves the data of a transfer")
      ->type_name("get|put")
      ->default_str("get");
  command.add_option("--streams", a.streams, "Of pipelines: streams among which steps are divided")
      ->type_name("N")
      ->default_str("4");
  command.add_option("--tiles", a.tiles, "Of each shard, for pipelined_tiles")
      ->type_name("N")
      ->default_str("8");
  add_mover_options(command, a.mover);
  command.add_option("--transport", a.transport, "Of fused: what brings A")
      ->type_name("auto|copy_engine|pull")
      ->default_str("auto");
  command
      .add_option("--calls", a.calls,
                  "Calls per sample, at least. On a GPU they are enqueued while an earlier kernel "
                  "runs, so the time of the host, which is measured by itself, is not in a sample")
      ->type_name("N")
      ->default_str("4");
  add_rank_options(command, a.matmul.bench);
}

void add_orders(CLI::App& command, AllGatherMatmulArguments& a) {
  command.option_defaults()->group("Algorithms");
  command
      .add_option("--algorithms", a.matmul.bench.algorithms,
                  "Of several ranks: what gathers A and multiplies it; nccl_unfused is NCCL's "
                  "all-gather, then cuBLASLt. Of one GPU: orders of the tiles of the gated kernel; "
                  "plain: none. The matmuls of an A that is there always run")
      ->type_name(
          "unfused|nccl_unfused|pipelined_shift|pipelined_ring|pipelined_tiles|fused|all"
          "[,...]; plain|gated|rotated|frontier|all[,...]")
      ->default_str("all");
  command.add_option("--tile", a.matmul.tile, "Tiles that the own kernel must use")
      ->type_name(fmt::format("{}|all[,...]", fmt::join(matmul_tile_names(), "|")))
      ->default_str("chosen by shape");
}

}  // namespace

void add_all_gather_matmul_options(CLI::App& command, AllGatherMatmulArguments& a) {
  add_gathered_shapes(command, a);
  add_several_ranks(command, a);
  add_arrival(command, a);
  add_orders(command, a);
  add_matmul_sampling(command, a.matmul,
                      {"40; 10 on the host", "4; 1 on the host", "3; 0 on the host"});
  add_matmul_results(command, a.matmul);
  command.footer(kGatedExamples);
}

}  // namespace tutti::cli
