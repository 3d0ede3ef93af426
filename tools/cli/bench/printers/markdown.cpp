#include <fmt/core.h>

#include "base/units.hpp"
#include "bench/printers/printers.hpp"

namespace tutti::cli {

std::string print_markdown(const Record& record) {
  std::string text;
  for (const Group& group : groups_of(record.rows)) {
    const std::vector<std::string> algorithms = algorithms_of(group);
    text += fmt::format("{}**{}** (us, p50; bold: what auto takes)\n\n| bytes |",
                        text.empty() ? "" : "\n", title_of(group));
    for (const std::string& name : algorithms) text += fmt::format(" {} |", name);
    text += " best (speed-up over NCCL) | busbw GB/s |\n|---:|";
    for (std::size_t k = 0; k < algorithms.size(); ++k) text += "---:|";
    text += "---|---:|\n";
    for (const SizeView& size : sizes_of(group)) {
      const auto& rows = size.out_of_place.empty() ? size.in_place : size.out_of_place;
      const std::string shape = shape_text(*rows.front());
      text += shape.empty() ? fmt::format("| {} |", format_bytes(size.bytes))
                            : fmt::format("| {} ({}) |", format_bytes(size.bytes), shape);
      for (const std::string& name : algorithms) {
        const Row* row = row_of_algorithm(size.out_of_place, name);
        const std::string time = row == nullptr ? "n/a" : time_text(row->time_us.p50);
        text += row != nullptr && row->chosen ? fmt::format(" **{}** |", time)
                                              : fmt::format(" {} |", time);
      }
      const Row* best = fastest(size.out_of_place);
      text += fmt::format(" {} | {:.1f} |\n", best_text(size.out_of_place),
                          best == nullptr ? 0.0 : best->busbw_gbps);
    }
  }
  return text;
}

}  // namespace tutti::cli
