#include "bench/all_gather_matmul/ranks/print.hpp"

#include <fmt/format.h>

#include <optional>

#include "bench/matmul/print.hpp"
#include "bench/printers/shape_table.hpp"

namespace tutti::cli {
namespace {

std::string known_or_dash(const std::optional<double>& value, int decimals) {
  return value ? fmt::format("{:.{}f}", *value, decimals) : "-";
}
std::string positive_or_dash(double value, int decimals) {
  return value > 0 ? fmt::format("{:.{}f}", value, decimals) : "-";
}
// TFLOP/s of GPUs and of hosts.
std::string rate_of(const MatmulRow& row) {
  return positive_or_dash(row.tflops, row.tflops < 10 ? 3 : 1);
}
std::string named_with_config(const Row& row) {
  const std::string& config = row.matmul->config;
  return config.empty() ? row.algorithm : fmt::format("{} ({})", row.algorithm, config);
}

class GatheredTable final : public ShapeTable {
 public:
  using ShapeTable::ShapeTable;

 private:
  std::string heading(const Group& group) const override {
    return fmt::format("#\n# {}\n#", title_of_gathered(group)) +
           fmt::format("{:>7}{:>8}{:>8}{:>10}{:>10}{:>9}{:>10}{:>8}{:>9}{:>9}{:>7}{:>7}", "m", "n",
                       "k", "p50", "p90", "TFLOP/s", "speed-up", "/alone", "exposed", "host",
                       "clock", "#wrong") +
           "  algorithm\n" +
           fmt::format("#{:>33}{:>10}{:>36}{:>9}{:>7}\n", "(us)", "(us)", "(us)", "(us)", "(MHz)");
  }

  std::string line(const Row& row) const override {
    const MatmulRow& m = *row.matmul;
    const GatheredRow& g = *m.gathered;
    const std::string text =
        fmt::format("{:>8}{:>8}{:>8}{:>10}{:>10}{:>9}{:>10}{:>8}{:>9}{:>9}{:>7}", m.m, m.n, m.k,
                    time_text(row.time_us.p50), time_text(row.time_us.p90), rate_of(m),
                    known_or_dash(g.speed_up, 3), known_or_dash(g.over_alone, 3),
                    known_or_dash(g.exposed_us, 1), positive_or_dash(g.host_us, 1),
                    positive_or_dash(m.megahertz, 0));
    return text + wrong_text(row) + "  " + named_with_config(row) + "\n";
  }
};

}  // namespace

std::unique_ptr<Printer> make_gathered_table_printer(const Look& look) {
  return std::make_unique<GatheredTable>(look);
}

std::string title_of_gathered(const Group& group) {
  const Row& first = group.first();
  return fmt::format("{}, {} ranks ({})", title_of_matmul(group), first.ranks, first.launch);
}

Table gathered_table_of(const Group& group) {
  Table table{.title = title_of_gathered(group),
              .remark =
                  "us: p50 of the slowest rank; speed-up: over unfused; /alone: time over the "
                  "fastest matmul of a gathered A; exposed: what is more than that; host: of the "
                  "host for a call",
              .columns = {{"m"},
                          {"n"},
                          {"k"},
                          {"algorithm", true},
                          {"us"},
                          {"TFLOP/s"},
                          {"speed-up"},
                          {"/alone"},
                          {"exposed us"},
                          {"host us"},
                          {"config", true}},
              .rows = {}};
  for (const Row* row : group.rows) {
    const MatmulRow& m = *row->matmul;
    const GatheredRow& g = *m.gathered;
    table.rows.push_back({{fmt::format("{}", m.m)},
                          {fmt::format("{}", m.n)},
                          {fmt::format("{}", m.k)},
                          {row->algorithm},
                          {time_text(row->time_us.p50)},
                          {rate_of(m)},
                          {known_or_dash(g.speed_up, 3)},
                          {known_or_dash(g.over_alone, 3)},
                          {known_or_dash(g.exposed_us, 1)},
                          {positive_or_dash(g.host_us, 1)},
                          {m.config}});
  }
  return table;
}

}  // namespace tutti::cli
