// All algorithms of a group: a column each, in tables that fit.
#include <fmt/format.h>

#include <algorithm>

#include "bench/printers/printers.hpp"

namespace tutti::cli {
namespace {

constexpr std::size_t kSizeWidth = 10;

struct TextCell {
  std::string text;
  bool bold = false;
};

struct TextColumn {
  std::string title;
  std::size_t width = 0;  // with what separates it from the one before
  std::vector<TextCell> cells = {};
  bool left = false;  // where its text stands
};

std::string placed(const std::string& text, const TextColumn& column) {
  return column.left ? fmt::format("  {:{}}", text, column.width - 2)
                     : fmt::format("{:>{}}", text, column.width);
}

std::vector<std::string> names_of(const Group& group, const std::vector<std::string>& asked) {
  std::vector<std::string> measured = algorithms_of(group), names = asked;
  std::erase_if(names, [&](const auto& name) { return std::ranges::count(measured, name) == 0; });
  for (std::string& name : measured) {
    if (std::ranges::count(names, name) == 0) names.push_back(std::move(name));
  }
  return names;
}

TextColumn times_of(const std::string& algorithm,
                    const std::vector<std::vector<const Row*>>& sizes) {
  TextColumn column{.title = algorithm + " ",
                    .width = std::max<std::size_t>(algorithm.size(), 7) + 3};
  for (const auto& rows : sizes) {
    const Row* row = row_of_algorithm(rows, algorithm);
    const bool chosen = row != nullptr && row->chosen;
    const std::string time = row == nullptr ? "n/a" : time_text(row->time_us.p50);
    column.cells.push_back({time + (chosen ? "*" : " "), chosen});
  }
  return column;
}

TextColumn best_of(const std::vector<std::vector<const Row*>>& sizes) {
  TextColumn column{.title = "best (speed-up over NCCL)", .left = true};
  std::size_t longest = column.title.size();
  for (const auto& rows : sizes) {
    column.cells.push_back({best_text(rows)});
    longest = std::max(longest, column.cells.back().text.size());
  }
  column.width = 2 + longest;
  return column;
}

std::string without_trailing_spaces(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string print_columns(std::span<const TextColumn> columns,
                          const std::vector<std::size_t>& bytes, const Look& look) {
  std::string titles = fmt::format("#{:>{}}", "size", kSizeWidth - 1);
  for (const TextColumn& column : columns) titles += placed(column.title, column);
  std::string text = without_trailing_spaces(titles) + "\n";
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    std::string line = fmt::format("{:>{}}", bytes[size], kSizeWidth);
    for (const TextColumn& column : columns) {
      const TextCell& cell = column.cells[size];
      const std::string shown = placed(cell.text, column);
      line += cell.bold ? look.paint(Ink::kBold, shown) : shown;
    }
    text += without_trailing_spaces(line) + "\n";
  }
  return text;
}

std::string print_side(const Group& group, bool in_place, const std::vector<std::string>& asked,
                       const Look& look) {
  std::vector<std::vector<const Row*>> sizes;
  std::vector<std::size_t> bytes;
  for (const SizeView& size : sizes_of(group)) {
    const auto& rows = in_place ? size.in_place : size.out_of_place;
    if (rows.empty()) continue;
    sizes.push_back(rows);
    bytes.push_back(size.bytes);
  }
  if (sizes.empty()) return {};
  std::vector<TextColumn> columns = {best_of(sizes)};
  for (const std::string& name : names_of(group, asked)) columns.push_back(times_of(name, sizes));
  std::string text = fmt::format("#\n# time of each algorithm, {}, us (* what auto uses)\n",
                                 in_place ? "in-place" : "out-of-place");
  for (auto first = columns.begin(); first != columns.end();) {
    std::size_t used = kSizeWidth;
    auto last = first;
    do used += (last++)->width;
    while (last != columns.end() && used + last->width <= look.width);
    text += (first == columns.begin() ? "" : "#\n") + print_columns({first, last}, bytes, look);
    first = last;
  }
  return text;
}

}  // namespace

std::string print_algorithms(const Group& group, const std::vector<std::string>& asked,
                             const Look& look) {
  return print_side(group, false, asked, look) + print_side(group, true, asked, look);
}

}  // namespace tutti::cli
