#include "bench/printers/shape_table.hpp"

#include <fmt/format.h>

namespace tutti::cli {

std::string ShapeTable::begin(const Record& record) { return print_environment(record); }

std::string ShapeTable::add(std::span<const Row> rows) {
  std::string text;
  for (const Group& group : groups_of(rows)) {
    if (!last_ || !same_group(*last_, group.first())) text += heading(group);
    last_ = group.first();
    for (const Row* row : group.rows) text += line(*row);
    for (const Row* row : group.rows) text += remark(*row);
  }
  return text;
}

std::string ShapeTable::wrong_text(const Row& row) const {
  const std::string text = fmt::format("{:>7}", row.wrong ? fmt::format("{}", *row.wrong) : "N/A");
  return row.wrong.value_or(0) > 0 ? look_.paint(Ink::kRed, text) : text;
}

}  // namespace tutti::cli
