// One row per tuple, for spreadsheets and scripts.
#include <fmt/format.h>

#include "bench/printers/printers.hpp"

namespace tutti::cli {

std::string print_csv(const Record& record) {
  std::string text =
      "collective,algorithm,backend,ranks,dtype,op,bytes,count,in_place,buffers,mode,"
      "graph_operations,chained,cache,launch,blocks,threads,chunk_bytes,p50_us,p90_us,p99_us,"
      "min_us,max_us,n,copy_us,algbw_gbps,busbw_gbps,wrong,chosen\n";
  for (const Row& r : record.rows) {
    text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},", r.collective, r.algorithm,
                        r.backend, r.ranks, r.dtype, r.op, r.bytes, r.count, r.in_place, r.buffers,
                        r.mode, r.graph_operations, r.chained, r.cache, r.launch);
    text +=
        fmt::format("{},{},{},{:.3f},{:.3f},{:.3f},{:.3f},{:.3f},{},{:.3f},{:.3f},{:.3f},{},{}\n",
                    r.blocks, r.threads, r.chunk_bytes, r.time_us.p50, r.time_us.p90, r.time_us.p99,
                    r.time_us.min, r.time_us.max, r.time_us.n, r.copy_us, r.algbw_gbps,
                    r.busbw_gbps, r.wrong ? fmt::format("{}", *r.wrong) : "", r.chosen);
  }
  return text;
}

}  // namespace tutti::cli
