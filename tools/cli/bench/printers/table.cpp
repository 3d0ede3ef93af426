// nccl-tests' columns for what auto takes, then one column per algorithm and the best.
#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/units.hpp"
#include "bench/printers/printers.hpp"

namespace tutti::cli {
namespace {

constexpr int kSideWidth = 9 + 8 + 8 + 8;

bool has_in_place(const Group& group) {
  return std::any_of(group.rows.begin(), group.rows.end(),
                     [](const Row* r) { return r->in_place; });
}

std::size_t width_of(const std::string& algorithm) {
  return std::max<std::size_t>(algorithm.size(), 9) + 2;
}

// time algbw busbw #wrong, of one side.
std::string side(const std::vector<const Row*>& rows) {
  const Row* row = chosen_or_fastest(rows);
  if (row == nullptr) return fmt::format("{:>9}{:>8}{:>8}{:>8}", "n/a", "n/a", "n/a", "n/a");
  return fmt::format("{:>9}{:>8.2f}{:>8.2f}{:>8}", time_text(row->time_us.p50), row->algbw_gbps,
                     row->busbw_gbps, row->wrong ? fmt::format("{}", *row->wrong) : "N/A");
}

std::string heading(const Group& group, const std::vector<std::string>& algorithms) {
  const bool both = has_in_place(group);
  std::string text = fmt::format("# {}\n", title_of(group));
  text += fmt::format("#{:>33}{:^{}}", "", "out-of-place", kSideWidth);
  if (both) text += fmt::format("{:^{}}", "in-place", kSideWidth);
  text += "  time of each algorithm, us (* what auto takes)\n";
  const std::string names = fmt::format("{:>9}{:>8}{:>8}{:>8}", "time", "algbw", "busbw", "#wrong");
  const std::string units = fmt::format("{:>9}{:>8}{:>8}", "(us)", "(GB/s)", "(GB/s)");
  const bool tensors = group.first().hidden > 0;
  text +=
      fmt::format("#{:>11}{:>11}{:>6}{:>5}", "size", tensors ? "shape" : "count", "type", "op") +
      names + (both ? names : "");
  for (const std::string& name : algorithms) text += fmt::format("{:>{}}", name, width_of(name));
  text += "  best (speed-up over NCCL)\n";
  text +=
      fmt::format("#{:>11}{:>11}{:>6}{:>5}", "(B)", tensors ? "(r x hid)" : "(elements)", "", "");
  text += both ? fmt::format("{}{:8}{}", units, "", units) : units;
  return text + "\n";
}

std::string elements_of(const Row& row) {
  const std::string shape = shape_text(row);
  return shape.empty() ? fmt::format("{}", row.count) : shape;
}

std::string line(const Group& group, const SizeView& size,
                 const std::vector<std::string>& algorithms) {
  const Row& first = group.first();
  const Row& any = size.out_of_place.empty() ? *size.in_place.front() : *size.out_of_place.front();
  std::string text =
      fmt::format(" {:>11}{:>11}{:>6}{:>5}", size.bytes, elements_of(any), first.dtype, first.op);
  text += side(size.out_of_place);
  if (has_in_place(group)) text += side(size.in_place);
  for (const std::string& name : algorithms) {
    const Row* row = row_of_algorithm(size.out_of_place, name);
    const std::string time = row == nullptr ? "n/a" : time_text(row->time_us.p50);
    text += fmt::format("{:>{}}{}", time, width_of(name) - 1,
                        row != nullptr && row->chosen ? '*' : ' ');
  }
  return text + fmt::format("  {}\n", best_text(size.out_of_place));
}

std::vector<std::string> columns_of(const Group& group, const std::vector<std::string>& asked) {
  std::vector<std::string> columns = asked;
  for (std::string& name : algorithms_of(group)) {
    if (std::find(columns.begin(), columns.end(), name) == columns.end()) {
      columns.push_back(std::move(name));
    }
  }
  return columns;
}

std::string copies(const Group& group) {
  std::string text;
  for (const Row* row : group.rows) {
    if (row->copy_us <= 0) continue;
    text += fmt::format("# {} B, {}: {} us of copies into and out of staging\n", row->bytes,
                        row->algorithm, time_text(row->copy_us));
  }
  return text;
}

// What is not what it is called.
std::string emulations(const Group& group) {
  std::set<std::string> names;
  for (const Row* row : group.rows) {
    if (row->emulated) names.insert(row->algorithm);
  }
  std::string text;
  for (const std::string& name : names) {
    text += fmt::format("# {} is emulated by a loop over the peers\n", name);
  }
  return text;
}

}  // namespace

std::string print_environment(const Record& record) {
  const Environment& e = record.environment;
  std::string text = fmt::format("# tutti {} on {}", record.tutti, e.host);
  if (e.gpus > 0) {
    text += fmt::format(", {} x {}, driver {}, CUDA {}, NCCL {}", e.gpus, e.gpu, e.driver, e.cuda,
                        e.nccl.empty() ? "not found" : e.nccl);
  }
  return text + fmt::format(", {}\n", e.date);
}

std::string print_table(const Record& record, const std::vector<std::string>& asked) {
  std::string text = print_environment(record);
  for (const Group& group : groups_of(record.rows)) {
    const std::vector<std::string> algorithms = columns_of(group, asked);
    text += "\n" + heading(group, algorithms);
    for (const SizeView& size : sizes_of(group)) text += line(group, size, algorithms);
    text += copies(group) + emulations(group);
  }
  const Calibration& c = record.environment.calibration;
  if (c.kernel_gap_us > 0) {
    text +=
        fmt::format("# calibration: {:.2f} us between empty kernels in a graph", c.kernel_gap_us);
    if (c.hop_us > 0) text += fmt::format(", {:.2f} us one way between two GPUs", c.hop_us);
    text += "\n";
  }
  if (c.copy_gbps > 0) {
    text += fmt::format("# calibration: {:.2f} GB/s, memcpy of {} by one thread\n", c.copy_gbps,
                        format_bytes(c.copy_bytes));
  }
  return text;
}

}  // namespace tutti::cli
