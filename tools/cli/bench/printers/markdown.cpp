#include <fmt/core.h>

#include <algorithm>

#include "base/units.hpp"
#include "bench/printers/comparison.hpp"
#include "bench/printers/printers.hpp"

namespace tutti::cli {
namespace {

Cell cell(const std::vector<const Row*>& rows, const Series& column) {
  const auto row =
      std::find_if(rows.begin(), rows.end(), [&](const Row* each) { return column.shows(*each); });
  if (row == rows.end()) return {"n/a"};
  return {time_text((*row)->time_us.p50), (*row)->chosen};
}

// The size, what auto gains on the best other library, who that is, and auto's bandwidth.
std::vector<Cell> leading_cells(const Compared& size, const std::string& shape) {
  const std::string bytes = format_bytes(size.bytes);
  const Row* other = size.best_other();
  const auto speed_up = size.speed_up();
  return {{shape.empty() ? bytes : fmt::format("{} ({})", bytes, shape)},
          {speed_up ? fmt::format("{:.2f}x", *speed_up) : "n/a"},
          {other == nullptr ? "n/a" : other->algorithm},
          {size.chosen == nullptr ? "n/a" : fmt::format("{:.1f}", size.chosen->busbw_gbps)}};
}

}  // namespace

Table table_of(const Group& group, const std::vector<const Row*>& beside,
               const std::string& remark) {
  Group all = group;
  all.rows.insert(all.rows.end(), beside.begin(), beside.end());
  const std::vector<Series> series = series_of(all.rows);
  const std::vector<Compared> compared = compare(group, beside);
  Table table{
      .title = title_of(group),
      .remark = "us, p50; bold: what auto used in this run" + (remark.empty() ? "" : "; " + remark),
      .columns = {{"bytes"}, {"speed-up"}, {"best other", true}, {"busbw GB/s"}},
      .rows = {}};
  for (const Series& column : series) table.columns.push_back({column.title()});
  const std::vector<SizeView> sizes = sizes_of(all);
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    std::vector<const Row*> rows = sizes[k].out_of_place;
    rows.insert(rows.end(), sizes[k].in_place.begin(), sizes[k].in_place.end());
    std::vector<Cell> cells = leading_cells(compared[k], shape_text(*rows.front()));
    for (const Series& column : series) cells.push_back(cell(rows, column));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

std::string to_markdown(const Table& table) {
  std::string text = fmt::format("**{}** ({})\n\n|", table.title, table.remark);
  for (const Column& column : table.columns) text += fmt::format(" {} |", column.title);
  text += "\n|";
  for (const Column& column : table.columns) text += column.left ? "---|" : "---:|";
  for (const std::vector<Cell>& row : table.rows) {
    text += "\n|";
    for (const Cell& cell : row) {
      text += cell.bold ? fmt::format(" **{}** |", cell.text) : fmt::format(" {} |", cell.text);
    }
  }
  return text + "\n";
}

std::string print_markdown(const Record& record) {
  std::string text;
  for (const Group& group : groups_of(record.rows)) {
    text += text.empty() ? "" : "\n";
    text += to_markdown(table_of(group, {}, multicast_text(group, {&record})));
  }
  return text;
}

}  // namespace tutti::cli
