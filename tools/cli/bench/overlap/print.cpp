#include "bench/overlap/print.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "base/units.hpp"
#include "bench/overlap/phase.hpp"

namespace tutti::cli {
namespace {

// "overlap, 2 ranks ...; m 8192, n 8192, k 8192, cuBLASLt 13.0.2; 64M from each rank"
std::string title_of_overlap(const Group& group) {
  const OverlapRow& any = *group.first().overlap;
  const auto named = [](const Row* row) { return !row->overlap->library.empty(); };
  const auto row = std::find_if(group.rows.begin(), group.rows.end(), named);
  const auto gathered = std::find_if(group.rows.begin(), group.rows.end(),
                                     [](const Row* each) { return each->bytes > 0; });
  std::string text = title_of(group) + fmt::format("; m {}, n {}, k {}", any.m, any.n, any.k);
  if (any.tf32) text += ", TF32";
  if (any.pause_ms > 0) text += fmt::format(", {} ms of rest before each", any.pause_ms);
  if (row != group.rows.end()) text += fmt::format(", {}", (*row)->overlap->library);
  if (gathered == group.rows.end()) return text;
  const std::size_t part = (*gathered)->bytes / static_cast<std::size_t>((*gathered)->ranks);
  text += fmt::format("; {} from each rank", format_bytes(part));
  if (any.dependent) text += ", which are A";
  return (*gathered)->in_place ? text + ", in place" : text;
}

std::string optional_text(const std::optional<double>& value, int decimals,
                          std::string_view unit = "") {
  return value ? fmt::format("{:.{}f}{}", *value, decimals, unit) : "n/a";
}

// Teraflops and GB/s, of GPUs and of hosts.
std::string rate_text(double value) {
  if (value <= 0) return "-";
  return fmt::format("{:.{}f}", value, value < 10 ? 3 : 1);
}

std::string times_text(const RankTimes& times) {
  return fmt::format("{:>10}{:>10}{:>10}{:>10}", time_text(times.mean), time_text(times.p50),
                     time_text(times.p90), time_text(times.max));
}

std::string heading() {
  return fmt::format(
             "#{:>11}{:>16}{:>9}{:>10}{:>10}{:>10}{:>10}{:>9}{:>9}{:>10}{:>8}{:>8}{:>8}{:>8}\n",
             "mode", "algorithm", "rank", "avg", "p50", "p90", "max", "matmul", "busbw", "exposed",
             "effic.", "matmul", "clock", "#wrong") +
         fmt::format("#{:>36}{:>10}{:>10}{:>10}{:>10}{:>9}{:>9}{:>10}{:>8}{:>8}{:>8}\n", "", "(us)",
                     "(us)", "(us)", "(us)", "TFLOP/s", "(GB/s)", "(us)", "", "slower", "(MHz)");
}

std::string lines_of(const Row& row) {
  const OverlapRow& overlap = *row.overlap;
  const bool both = overlap.matmul_us > 0 && overlap.gather_us > 0;
  std::string text;
  const auto begin = [&](const std::string& rank) {
    text +=
        fmt::format(" {:>11}{:>16}{:>9}", overlap.phase, row.bytes > 0 ? row.algorithm : "-", rank);
  };
  for (std::size_t rank = 0; rank < overlap.per_rank.size(); ++rank) {
    begin(fmt::format("{}", rank));
    text += times_text(overlap.per_rank[rank]) + "\n";
  }
  begin("slowest");
  text += times_text({overlap.mean_us, row.time_us.p50, row.time_us.p90, row.time_us.max});
  return text + fmt::format("{:>9}{:>9}{:>10}{:>8}{:>8}{:>8}{:>8}\n", rate_text(overlap.tflops),
                            rate_text(row.busbw_gbps),
                            both ? optional_text(overlap.exposed_us, 1) : "-",
                            both ? optional_text(overlap.efficiency, 3) : "-",
                            both ? optional_text(overlap.matmul_slowdown, 3, "x") : "-",
                            overlap.megahertz > 0 ? fmt::format("{:.0f}", overlap.megahertz) : "-",
                            row.wrong ? fmt::format("{}", *row.wrong) : "N/A");
}

// Null where it was not measured. The matmul alone is of every algorithm.
const Row* find(const Group& group, Phase phase, std::string_view algorithm) {
  const auto row = std::find_if(group.rows.begin(), group.rows.end(), [&](const Row* each) {
    return each->overlap->phase == to_string(phase) &&
           (phase == Phase::kMatmul || each->algorithm == algorithm);
  });
  return row == group.rows.end() ? nullptr : *row;
}

std::string time_of(const Row* row) { return row == nullptr ? "n/a" : time_text(row->time_us.p50); }

}  // namespace

std::string print_overlap_table(const Record& record) {
  std::string text = print_environment(record);
  for (const Group& group : groups_of(record.rows)) {
    text += fmt::format("\n# {}\n", title_of_overlap(group)) + heading();
    for (const Row* row : group.rows) text += lines_of(*row);
  }
  return text;
}

Table overlap_table_of(const Group& group, const std::string& remark) {
  Table table{.title = title_of_overlap(group),
              .remark = "us, p50" + (remark.empty() ? "" : "; " + remark),
              .columns = {{"algorithm", true}},
              .rows = {}};
  for (const char* title :
       {"matmul alone", "all_gather alone", "one after the other", "overlapped", "exposed",
        "efficiency", "matmul slower", "matmul TFLOP/s", "busbw GB/s"}) {
    table.columns.push_back({title});
  }
  for (const std::string& algorithm : algorithms_of(group)) {
    const Row* matmul = find(group, Phase::kMatmul, algorithm);
    const Row* gather = find(group, Phase::kAllGather, algorithm);
    const Row* in_turn = find(group, Phase::kSequential, algorithm);
    const Row* overlapped = find(group, Phase::kOverlap, algorithm);
    const Row* both = overlapped != nullptr ? overlapped : in_turn;
    if (gather == nullptr && both == nullptr && algorithms_of(group).size() > 1) continue;
    const OverlapRow figures = both == nullptr ? OverlapRow{} : *both->overlap;
    table.rows.push_back({{algorithm},
                          {time_of(matmul)},
                          {time_of(gather)},
                          {time_of(in_turn)},
                          {time_of(overlapped)},
                          {optional_text(figures.exposed_us, 1)},
                          {optional_text(figures.efficiency, 3)},
                          {optional_text(figures.matmul_slowdown, 3, "x")},
                          {matmul == nullptr ? "n/a" : rate_text(matmul->overlap->tflops)},
                          {gather == nullptr ? "n/a" : rate_text(gather->busbw_gbps)}});
  }
  return table;
}

std::string print_overlap_markdown(const Record& record) {
  std::string text;
  for (const Group& group : groups_of(record.rows)) {
    text += text.empty() ? "" : "\n";
    text += to_markdown(overlap_table_of(group, multicast_text(group, {&record})));
  }
  return text;
}

}  // namespace tutti::cli
