// One row per tuple, for spreadsheets and scripts.
#include <fmt/format.h>

#include <algorithm>

#include "bench/printers/printers.hpp"

namespace tutti::cli {
namespace {

// What has commas in it is quoted.
std::string matmul_cells(const MatmulRow& m) {
  return fmt::format(",{},{},{},{},{},{},\"{}\",{:.3f},{:.6f}", m.m, m.n, m.k, m.layout, m.products,
                     m.bias, m.config, m.tflops, m.ratio);
}

std::string arrival_cells(const ArrivalRow& a) {
  return fmt::format(",{},{},\"{}\",{},{:.6f},{:.3f},{:.3f},{:.6f},{:.3f},{:.6f}", a.ranks,
                     a.chunks, a.arrival, a.order, a.over_own, a.last_us, a.bound_us, a.over_bound,
                     a.predicted_us, a.predicted_error);
}

std::string number_or_empty(const std::optional<double>& value) {
  return value ? fmt::format("{:.6f}", *value) : "";
}

std::string gathered_cells(const GatheredRow& g) {
  return fmt::format(",\"{}\",{},{:.3f},{},{},{},{}", g.pipeline, g.calls, g.host_us, g.alone,
                     number_or_empty(g.speed_up), number_or_empty(g.over_alone),
                     number_or_empty(g.exposed_us));
}

// Without the end of the line.
std::string csv_line(const Row& r) {
  return fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},", r.collective, r.algorithm,
                     r.backend, r.ranks, r.dtype, r.op, r.bytes, r.count, r.in_place, r.buffers,
                     r.mode, r.graph_operations, r.chained, r.cache, r.launch) +
         fmt::format("{},{},{},{:.3f},{:.3f},{:.3f},{:.3f},{:.3f},{},{:.3f},{:.3f},{:.3f},{},{}",
                     r.blocks, r.threads, r.chunk_bytes, r.time_us.p50, r.time_us.p90,
                     r.time_us.p99, r.time_us.min, r.time_us.max, r.time_us.n, r.copy_us,
                     r.algbw_gbps, r.busbw_gbps, r.wrong ? fmt::format("{}", *r.wrong) : "",
                     r.chosen);
}

class CsvPrinter : public Printer {
 public:
  explicit CsvPrinter(CsvColumns columns)
      : matmuls_(columns >= CsvColumns::kMatmuls),
        arrivals_(columns >= CsvColumns::kArrivals),
        gathered_(columns >= CsvColumns::kGathered) {}

  std::string begin(const Record&) override {
    return std::string(
               "collective,algorithm,backend,ranks,dtype,op,bytes,count,in_place,buffers,mode,"
               "graph_operations,chained,cache,launch,blocks,threads,chunk_bytes,p50_us,p90_us,"
               "p99_us,min_us,max_us,n,copy_us,algbw_gbps,busbw_gbps,wrong,chosen") +
           (matmuls_ ? ",m,n,k,layout,products,bias,config,tflops,ratio" : "") +
           (arrivals_ ? ",shards,chunks,arrival,order,over_own,last_us,bound_us,over_bound,"
                        "predicted_us,predicted_error"
                      : "") +
           (gathered_ ? ",pipeline,calls,host_us,alone,speed_up,over_alone,exposed_us" : "") + "\n";
  }
  std::string add(std::span<const Row> rows) override {
    std::string text;
    for (const Row& row : rows) {
      text += csv_line(row);
      if (matmuls_) text += row.matmul ? matmul_cells(*row.matmul) : ",,,,,,,,,";
      const bool arrives = row.matmul && row.matmul->arrival;
      if (arrivals_) text += arrives ? arrival_cells(*row.matmul->arrival) : ",,,,,,,,,,";
      const bool gathers = row.matmul && row.matmul->gathered;
      if (gathered_) text += gathers ? gathered_cells(*row.matmul->gathered) : ",,,,,,,";
      text += "\n";
    }
    return text;
  }
  std::string end(const Record&) override { return {}; }

 private:
  const bool matmuls_, arrivals_, gathered_;  // columns of theirs
};

}  // namespace

std::unique_ptr<Printer> make_csv_printer(CsvColumns columns) {
  return std::make_unique<CsvPrinter>(columns);
}

std::string print_csv(const Record& record) {
  CsvColumns columns = CsvColumns::kCommon;
  for (const Row& row : record.rows) {
    if (!row.matmul) continue;
    columns = std::max(columns, row.matmul->gathered  ? CsvColumns::kGathered
                                : row.matmul->arrival ? CsvColumns::kArrivals
                                                      : CsvColumns::kMatmuls);
  }
  return CsvPrinter(columns).whole(record);
}

}  // namespace tutti::cli
