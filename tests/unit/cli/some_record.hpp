// A record for tests: two algorithms beside NCCL at two sizes, as eight GPUs would give it.
#pragma once

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

inline Record some_record() {
  return {.tutti = "0.1.0",
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
