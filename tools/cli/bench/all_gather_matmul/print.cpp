#include "bench/all_gather_matmul/print.hpp"

#include <fmt/format.h>

#include <optional>

#include "bench/matmul/print.hpp"

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

class GatedTable final : public Printer {
 public:
  explicit GatedTable(const Look& look) : look_(look) {}

  std::string begin(const Record& record) override { return print_environment(record); }

  std::string add(std::span<const Row> rows) override {
    std::string text;
    for (const Group& group : groups_of(rows)) {
      if (!last_ || !same_group(*last_, group.first())) text += heading(group);
      last_ = group.first();
      for (const Row* row : group.rows) text += line(*row);
      for (const Row* row : group.rows) text += noise_of_own(*row);
    }
    return text;
  }

  std::string end(const Record&) override { return {}; }

 private:
  static std::string heading(const Group& group) {
    return fmt::format("#\n# {}\n#", title_of_arrival(group)) +
           fmt::format(
               "{:>7}{:>8}{:>8}{:>10}{:>10}{:>9}{:>9}{:>7}{:>10}{:>10}{:>9}{:>10}{:>8}{:>7}", "m",
               "n", "k", "p50", "p90", "TFLOP/s", "/own", "clock", "arrival", "bound", "/bound",
               "predicted", "error", "#wrong") +
           "  algorithm\n" +
           fmt::format("#{:>33}{:>10}{:>25}{:>10}{:>10}{:>19}\n", "(us)", "(us)", "(MHz)", "(us)",
                       "(us)", "(us)");
  }

  std::string line(const Row& row) const {
    const MatmulRow& m = *row.matmul;
    const ArrivalRow& a = *m.arrival;
    std::string text =
        fmt::format("{:>8}{:>8}{:>8}{:>10}{:>10}{:>9}{:>9}{:>7}{:>10}{:>10}{:>9}{:>10}{:>8}", m.m,
                    m.n, m.k, time_text(row.time_us.p50), time_text(row.time_us.p90),
                    known_text(m.tflops, 1), known_text(a.over_own, 4), known_text(m.megahertz, 0),
                    known_text(a.last_us, 1), known_text(a.bound_us, 1),
                    known_text(a.over_bound, 4), known_text(a.predicted_us, 1), error_text(a));
    const std::string wrongs =
        fmt::format("{:>7}", row.wrong ? fmt::format("{}", *row.wrong) : "N/A");
    text += row.wrong.value_or(0) > 0 ? look_.paint(Ink::kRed, wrongs) : wrongs;
    return text + "  " + row.algorithm + " (" + m.config + ")\n";
  }

  static std::string noise_of_own(const Row& row) {
    const MatmulRow& m = *row.matmul;
    if (!m.noise) return {};
    return fmt::format(
        "# {}: {} against itself: ratio {:.4f}, 80 % of the rounds {:.4f} to {:.4f}\n",
        extents_text(m), row.algorithm, m.noise->p50, m.noise->p10, m.noise->p90);
  }

  const Look look_;
  std::optional<Row> last_;  // before these
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
