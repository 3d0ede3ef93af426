// A record for tests: two algorithms beside NCCL at two sizes, as eight GPUs would give it.
#pragma once

#include "bench/overlap/phase.hpp"
#include "bench/record.hpp"

namespace tutti::cli {

inline Row some_row(const std::string& algorithm, std::size_t bytes, double time_us,
                    bool chosen = false) {
  const double algbw = algorithm_bandwidth(bytes, time_us);
  return {.collective = "all_reduce",
          .algorithm = algorithm,
          .backend = "cuda",
          .ranks = 8,
          .dtype = "bf16",
          .op = "sum",
          .bytes = bytes,
          .count = bytes / 2,
          .buffers = "symmetric",
          .mode = "graph",
          .graph_operations = 10,
          .cache = "hot",
          .launch = "processes",
          .blocks = 16,
          .threads = 512,
          .time_us = {time_us, time_us + 1, time_us + 2, time_us - 1, time_us + 3, 50},
          .per_rank_p50_us = std::vector<double>(8, time_us),
          .algbw_gbps = algbw,
          .busbw_gbps = bus_bandwidth(Collective::kAllReduce, algbw, 8),
          .wrong = 0,
          .chosen = chosen};
}

// Of `tutti bench overlap`.
inline Row some_overlap_row(Phase phase, double time_us) {
  Row row = some_row(gathers(phase) ? "copy_engine" : "matmul", gathers(phase) ? 512 << 20 : 0,
                     time_us, gathers(phase));
  row.collective = kOverlapName;
  row.dtype = "fp16";
  row.op = kNoOp;
  row.mode = "eager";
  row.graph_operations = 0;
  row.overlap = OverlapRow{.phase = std::string(to_string(phase)),
                           .m = 8192,
                           .n = 8192,
                           .k = 8192,
                           .library = multiplies(phase) ? "cuBLASLt 13.0.2" : "",
                           .mean_us = time_us + 0.5,
                           .per_rank = std::vector<RankTimes>(8, {time_us, time_us, 2000, 2001}),
                           .matmul_us = multiplies(phase) ? time_us - 10 : 0,
                           .gather_us = gathers(phase) ? time_us - 20 : 0,
                           .tflops = multiplies(phase) ? 700.0 : 0.0};
  if (multiplies(phase) && gathers(phase)) row.overlap->exposed_us = 200;
  return row;
}

// Of `tutti bench matmul`: 0.5 ms for the best of cuBLASLt, `ratio` as fast.
inline Row some_matmul_row(const std::string& algorithm, std::size_t m, double ratio) {
  Row row = some_row(algorithm, 100 << 20, 500 / ratio);
  row.collective = kMatmulBenchName;
  row.ranks = 1;
  row.op = kNoOp;
  row.buffers = "plain";
  row.graph_operations = 0;
  row.cache = "cold";
  row.launch = "threads";
  row.blocks = row.threads = 0;
  row.per_rank_p50_us.resize(1);
  const bool own = algorithm == "own_matmul";
  row.matmul = MatmulRow{.m = m,
                         .n = 3584,
                         .k = 8192,
                         .config = own ? "128x256x64, cluster 2x1, 4 stages" : "heuristic 2 of 8",
                         .library = own ? "" : "cuBLASLt 13.0.2",
                         .tflops = 700 * ratio,
                         .ratio = ratio,
                         .megahertz = 1410,
                         .watts = 690.5,
                         .utilisation = 0.912,
                         .fill = own ? 0.95 : 0};
  if (algorithm == "cublaslt_matmul") row.matmul->noise = {0.998, 1.0005, 1.002};
  return row;
}

inline Record some_record() {
  return {.tutti = "0.1.0",
          .commit = "be2dd1e4f3a2",
          .environment = {.host = "node1",
                          .gpu = "NVIDIA H200",
                          .gpus = 8,
                          .driver = "580.159",
                          .cuda = "13.0",
                          .nccl = "2.28.9",
                          .date = "2026-11-21T01:02:03Z",
                          .command = "tutti bench all_reduce",
                          .calibration = {.kernel_gap_us = 0.52, .hop_us = 1.33}},
          .rows = {some_row("one_shot", 1024, 4.0, true), some_row("two_shot", 1024, 6.0),
                   some_row("nccl", 1024, 16.0), some_row("one_shot", 1 << 20, 128.0),
                   some_row("two_shot", 1 << 20, 12.5, true), some_row("nccl", 1 << 20, 25.0)}};
}

}  // namespace tutti::cli
