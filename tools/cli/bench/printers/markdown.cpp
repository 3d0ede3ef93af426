#include <fmt/core.h>

#include <algorithm>

#include "base/units.hpp"
#include "bench/printers/printers.hpp"

namespace tutti::cli {
namespace {

std::string heading(const Group& group, const std::vector<Series>& columns) {
  std::string text =
      fmt::format("**{}** (us, p50; bold: what auto takes)\n\n| bytes |", title_of(group));
  for (const Series& column : columns) text += fmt::format(" {} |", column.title());
  text += " best (speed-up over NCCL) | busbw GB/s |\n|---:|";
  for (std::size_t k = 0; k < columns.size(); ++k) text += "---:|";
  return text + "---|---:|\n";
}

std::string cell(const std::vector<const Row*>& rows, const Series& column) {
  const auto row =
      std::find_if(rows.begin(), rows.end(), [&](const Row* each) { return column.shows(*each); });
  const std::string time = row == rows.end() ? "n/a" : time_text((*row)->time_us.p50);
  return row != rows.end() && (*row)->chosen ? fmt::format(" **{}** |", time)
                                             : fmt::format(" {} |", time);
}

std::string best_cells(const Group& group, std::size_t bytes) {
  std::vector<const Row*> rows;
  std::copy_if(group.rows.begin(), group.rows.end(), std::back_inserter(rows),
               [&](const Row* row) { return row->bytes == bytes && !row->in_place; });
  const Row* best = fastest(rows);
  const std::string bandwidth = best == nullptr ? "n/a" : fmt::format("{:.1f}", best->busbw_gbps);
  return fmt::format(" {} | {} |\n", best_text(rows), bandwidth);
}

}  // namespace

std::string print_markdown(const Group& group, const std::vector<const Row*>& beside) {
  Group all = group;
  all.rows.insert(all.rows.end(), beside.begin(), beside.end());
  const std::vector<Series> columns = series_of(all.rows);
  std::string text = heading(group, columns);
  for (const SizeView& size : sizes_of(all)) {
    std::vector<const Row*> rows = size.out_of_place;
    rows.insert(rows.end(), size.in_place.begin(), size.in_place.end());
    const std::string shape = shape_text(*rows.front());
    text += shape.empty() ? fmt::format("| {} |", format_bytes(size.bytes))
                          : fmt::format("| {} ({}) |", format_bytes(size.bytes), shape);
    for (const Series& column : columns) text += cell(rows, column);
    text += best_cells(group, size.bytes);
  }
  return text;
}

std::string print_markdown(const Record& record) {
  std::string text;
  for (const Group& group : groups_of(record.rows)) {
    text += (text.empty() ? "" : "\n") + print_markdown(group);
  }
  return text;
}

}  // namespace tutti::cli
