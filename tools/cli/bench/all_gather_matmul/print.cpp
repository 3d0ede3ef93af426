#include "bench/all_gather_matmul/print.hpp"

#include <fmt/format.h>

#include "bench/matmul/print.hpp"
#include "bench/printers/shape_table.hpp"

namespace tutti::cli {
namespace {

std::string known_text(double value, int decimals) {
  return value > 0 ? fmt::format("{:.{}f}", value, decimals) : "-";
}

std::string error_text(const ArrivalRow& arrival) {
  return arrival.predicted_us > 0 ? fmt::format("{:+.1f}%", 100 * arrival.predicted_error) : "-";
}

std::string title_of_arrival(const Group& group) {
  const ArrivalRow& arrival = *group.first().matmul->arrival;
  std::string text = fmt::format("{}, {} shards x {} chunks", title_of_matmul(group), arrival.ranks,
                                 arrival.chunks);
  if (arrival.k_groups > 1) text += fmt::format(" x {} k-groups", arrival.k_groups);
  if (arrival.pullers > 0) text += fmt::format(", {} pullers", arrival.pullers);
  text += fmt::format(", arrival {}", arrival.arrival);
  return arrival.trace.empty() ? text : text + " (" + arrival.trace + ")";
}

class GatedTable final : public ShapeTable {
 public:
  using ShapeTable::ShapeTable;

 private:
  std::string heading(const Group& group) const override {
    return fmt::format("#\n# {}\n#", title_of_arrival(group)) +
           fmt::format(
               "{:>7}{:>8}{:>8}{:>10}{:>10}{:>9}{:>9}{:>7}{:>10}{:>10}{:>9}{:>10}{:>8}{:>7}", "m",
               "n", "k", "p50", "p90", "TFLOP/s", "/own", "clock", "arrival", "bound", "/bound",
               "predicted", "error", "#wrong") +
           "  algorithm\n" +
           fmt::format("#{:>33}{:>10}{:>25}{:>10}{:>10}{:>19}\n", "(us)", "(us)", "(MHz)", "(us)",
                       "(us)", "(us)");
  }

  std::string line(const Row& row) const override {
    const MatmulRow& m = *row.matmul;
    const ArrivalRow& a = *m.arrival;
    const std::string text =
        fmt::format("{:>8}{:>8}{:>8}{:>10}{:>10}{:>9}{:>9}{:>7}{:>10}{:>10}{:>9}{:>10}{:>8}", m.m,
                    m.n, m.k, time_text(row.time_us.p50), time_text(row.time_us.p90),
                    known_text(m.tflops, 1), known_text(a.over_own, 4), known_text(m.megahertz, 0),
                    known_text(a.last_us, 1), known_text(a.bound_us, 1),
                    known_text(a.over_bound, 4), known_text(a.predicted_us, 1), error_text(a));
    return text + wrong_text(row) + "  " + row.algorithm + " (" + m.config + ")\n";
  }

  std::string remark(const Row& row) const override {
    const MatmulRow& m = *row.matmul;
    if (!m.noise) return {};
    return fmt::format(
        "# {}: {} against itself: ratio {:.4f}, 80 % of the rounds {:.4f} to {:.4f}\n",
        extents_text(m), row.algorithm, m.noise->p50, m.noise->p10, m.noise->p90);
  }
};

}  // namespace

std::unique_ptr<Printer> make_gated_table_printer(const Look& look) {
  return std::make_unique<GatedTable>(look);
}

Table gated_table_of(const Group& group) {
  Table table{.title = title_of_arrival(group),
              .remark =
                  "/own: time over own_matmul_only, the median of all rounds; bound: the "
                  "larger of the last arrival and own_matmul_only; error: of the prediction",
              .columns = {{"m"},
                          {"n"},
                          {"k"},
                          {"algorithm", true},
                          {"us"},
                          {"TFLOP/s"},
                          {"/own"},
                          {"arrival us"},
                          {"bound us"},
                          {"/bound"},
                          {"predicted us"},
                          {"error"},
                          {"config", true}},
              .rows = {}};
  for (const Row* row : group.rows) {
    const MatmulRow& m = *row->matmul;
    const ArrivalRow& a = *m.arrival;
    table.rows.push_back({{fmt::format("{}", m.m)},
                          {fmt::format("{}", m.n)},
                          {fmt::format("{}", m.k)},
                          {row->algorithm},
                          {time_text(row->time_us.p50)},
                          {known_text(m.tflops, 1)},
                          {known_text(a.over_own, 4)},
                          {known_text(a.last_us, 1)},
                          {known_text(a.bound_us, 1)},
                          {known_text(a.over_bound, 4)},
                          {known_text(a.predicted_us, 1)},
                          {error_text(a)},
                          {m.config}});
  }
  return table;
}

}  // namespace tutti::cli
