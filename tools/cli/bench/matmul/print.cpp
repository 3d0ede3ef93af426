#include "bench/matmul/print.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/all_gather_matmul/print.hpp"
#include "bench/all_gather_matmul/ranks/print.hpp"
#include "bench/printers/shape_table.hpp"

namespace tutti::cli {
namespace {

std::string number_text(double value, int decimals) {
  return value > 0 ? fmt::format("{:.{}f}", value, decimals) : "-";
}

std::string percent_text(double part) {
  return part > 0 ? fmt::format("{:.1f}%", 100 * part) : "-";
}

std::string noise_text(const MatmulRow& row) {
  if (!row.noise) return {};
  return fmt::format("# {}: {} against itself: ratio {:.4f}, 80 % of the rounds {:.4f} to {:.4f}\n",
                     extents_text(row), row.config, row.noise->p50, row.noise->p10, row.noise->p90);
}

// TFLOP/s of GPUs and of hosts.
std::string tflops_text(double tflops) { return number_text(tflops, tflops < 10 ? 3 : 1); }

class MatmulTable final : public ShapeTable {
 public:
  using ShapeTable::ShapeTable;

  std::string end(const Record& record) override {
    std::string text;
    for (const Group& group : groups_of(record.rows)) {
      for (const std::string& algorithm : algorithms_of(group)) {
        const double mean = mean_ratio(group, algorithm);
        if (mean <= 0 || algorithm == kPeerRow) continue;
        text += fmt::format("# {}, {}: geometric mean of the ratios {:.4f}\n",
                            title_of_matmul(group), algorithm, mean);
      }
    }
    return text;
  }

 private:
  std::string heading(const Group& group) const override {
    return fmt::format("#\n# {}\n#", title_of_matmul(group)) +
           fmt::format("{:>7}{:>8}{:>8}{:>10}{:>10}{:>10}{:>9}{:>8}{:>7}{:>6}{:>8}{:>8}{:>7}", "m",
                       "n", "k", "p50", "p90", "min", "TFLOP/s", "ratio", "clock", "W", "util.",
                       "fill", "#wrong") +
           "  algorithm\n" +
           fmt::format("#{:>33}{:>10}{:>10}{:>9}{:>8}{:>7}\n", "(us)", "(us)", "(us)", "", "",
                       "(MHz)");
  }

  std::string line(const Row& row) const override {
    const MatmulRow& m = *row.matmul;
    std::string text = fmt::format(
        "{:>8}{:>8}{:>8}{:>10}{:>10}{:>10}{:>9}{:>8}{:>7}{:>6}{:>8}{:>8}", m.m, m.n, m.k,
        time_text(row.time_us.p50), time_text(row.time_us.p90), time_text(row.time_us.min),
        tflops_text(m.tflops), number_text(m.ratio, 4), number_text(m.megahertz, 0),
        number_text(m.watts, 0), percent_text(m.utilisation), percent_text(m.fill));
    text += wrong_text(row);
    text += "  " + (row.chosen ? look().paint(Ink::kBold, row.algorithm) : row.algorithm);
    return text + (m.config.empty() ? "" : " (" + m.config + ")") + "\n";
  }

  std::string remark(const Row& row) const override { return noise_text(*row.matmul); }
};

// A column of a page's table: of which rows, and what of them.
struct MatmulColumn {
  std::string title;
  std::string algorithm;
  std::string (*text)(const Row& row);
};

std::string time_of_row(const Row& row) { return time_text(row.time_us.p50); }
std::string tflops_of_row(const Row& row) { return tflops_text(row.matmul->tflops); }
std::string ratio_of_row(const Row& row) { return number_text(row.matmul->ratio, 3); }
std::string noise_of_row(const Row& row) {
  const auto& noise = row.matmul->noise;
  return noise ? fmt::format("{:.3f} to {:.3f}", noise->p10, noise->p90) : "n/a";
}
std::string clock_of_row(const Row& row) { return number_text(row.matmul->megahertz, 0); }
std::string part_of_row(const Row& row) { return percent_text(row.matmul->utilisation); }
std::string power_of_row(const Row& row) { return number_text(row.matmul->watts, 0); }
std::string config_of_row(const Row& row) { return row.matmul->config; }

// Of each algorithm time and rate, and its ratio if cuBLASLt was measured; then what is known of
// the clock, of the first algorithm.
std::vector<MatmulColumn> columns_of(const Group& group) {
  std::vector<MatmulColumn> columns;
  const std::vector<std::string> algorithms = algorithms_of(group);
  const bool compared = std::ranges::count(algorithms, kPeerRow) > 0;
  const auto add = [&](const std::string& title, const std::string& of, auto* text) {
    columns.push_back({title, of, text});
  };
  for (const std::string& name : algorithms) {
    add(name + " us", name, time_of_row);
    add(name + " TFLOP/s", name, tflops_of_row);
    if (compared && name != kPeerRow) add(name + " ratio", name, ratio_of_row);
  }
  if (compared) add("noise", std::string(kPeerRow), noise_of_row);
  const std::string& first = algorithms.front();
  if (std::ranges::any_of(group.rows, [](const Row* row) { return row->matmul->megahertz > 0; })) {
    add(first + " MHz", first, clock_of_row);
    add(first + " util.", first, part_of_row);
    add("W", first, power_of_row);
  }
  add(first + " config", first, config_of_row);
  return columns;
}

}  // namespace

std::unique_ptr<Printer> make_matmul_table_printer(const Look& look) {
  return std::make_unique<MatmulTable>(look);
}

const Row* matmul_row(const Group& group, const MatmulRow& shape, std::string_view algorithm) {
  const auto row = std::ranges::find_if(group.rows, [&](const Row* each) {
    return each->algorithm == algorithm && each->matmul->same_extents(shape) &&
           each->matmul->tile.empty();
  });
  return row == group.rows.end() ? nullptr : *row;
}

double mean_ratio(const Group& group, std::string_view algorithm) {
  double sum = 0;
  int count = 0;
  for (const MatmulRow* shape : shapes_of(group)) {
    const Row* const row = matmul_row(group, *shape, algorithm);
    if (row == nullptr || row->matmul->ratio <= 0) continue;
    sum += std::log(row->matmul->ratio);
    ++count;
  }
  return count == 0 ? 0 : std::exp(sum / count);
}

std::string extents_text(const MatmulRow& row) {
  return fmt::format("{}x{}x{}", row.m, row.n, row.k);
}

std::string title_of_matmul(const Group& group) {
  const Row& first = group.first();
  const MatmulRow& m = *first.matmul;
  std::string text = fmt::format("{}, B {}-major", first.dtype, m.layout);
  if (m.products > 1) text += fmt::format(", {} products", m.products);
  if (m.bias) text += ", with bias";
  text += fmt::format(", backend {}", first.backend);
  for (const Row* row : group.rows) {
    const std::string& library = row->matmul->library;
    if (!library.empty() && text.find(library) == std::string::npos) text += ", " + library;
  }
  return text;
}

std::string kind_text(const Group& group) {
  const MatmulRow& m = *group.first().matmul;
  std::string text = group.first().dtype + "_" + m.layout;
  if (m.products > 1) text += fmt::format("_{}_products", m.products);
  return m.bias ? text + "_bias" : text;
}

std::vector<const MatmulRow*> shapes_of(const Group& group) {
  std::vector<const MatmulRow*> shapes;
  for (const Row* row : group.rows) {
    const auto same = [row](const MatmulRow* shape) { return shape->same_extents(*row->matmul); };
    if (std::ranges::none_of(shapes, same)) shapes.push_back(&*row->matmul);
  }
  return shapes;
}

Table matmul_table_of(const Group& group) {
  if (group.first().matmul->arrival) return gated_table_of(group);
  if (group.first().matmul->gathered) return gathered_table_of(group);
  Table table{.title = title_of_matmul(group),
              .remark =
                  "ratio: speed over the best of cuBLASLt's heuristics; noise: 80 % of the "
                  "ratios of cuBLASLt to itself, round by round",
              .columns = {{"m"}, {"n"}, {"k"}},
              .rows = {}};
  const std::vector<MatmulColumn> columns = columns_of(group);
  for (const MatmulColumn& column : columns) {
    table.columns.push_back({column.title, column.text == config_of_row});
  }
  for (const MatmulRow* shape : shapes_of(group)) {
    std::vector<Cell> cells = {{fmt::format("{}", shape->m)},
                               {fmt::format("{}", shape->n)},
                               {fmt::format("{}", shape->k)}};
    for (const MatmulColumn& column : columns) {
      const Row* const row = matmul_row(group, *shape, column.algorithm);
      cells.push_back({row == nullptr ? "n/a" : column.text(*row)});
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

std::string print_matmul_markdown(const Record& record) {
  std::string text;
  for (const Group& group : groups_of(record.rows)) {
    text += (text.empty() ? "" : "\n") + to_markdown(matmul_table_of(group));
  }
  return text;
}

}  // namespace tutti::cli
