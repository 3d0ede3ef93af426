// nccl-tests' layout: per size what auto takes, and NCCL to compare it with. Where more was
// measured, all of it follows.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/units.hpp"
#include "bench/printers/printers.hpp"

namespace tutti::cli {
namespace {

bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::count(names, name) > 0;
}

// Of what runs where `first` ran: between nodes, or on one, whose algorithms have shorter names.
std::size_t longest_name(const Row& first) {
  std::size_t longest = std::string_view("algorithm").size();
  const auto parsed = parse_collective(first.collective);
  if (!parsed.is_ok()) return longest;
  const auto shown = find_algorithm(*parsed, first.algorithm);
  const bool between = shown.is_ok() && ((*shown)->needs & kNeedsNetwork) != 0;
  for (const Algorithm& row : rows_of(*parsed)) {
    if (((row.needs & kNeedsNetwork) != 0) != between) continue;
    longest = std::max(longest, row.name().size());
  }
  return longest;
}

// Lines that fit, broken at commas.
std::string comment(const std::string& text, const Look& look) {
  std::string lines = "#";
  std::size_t used = lines.size();
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t comma = text.find(", ", at);
    const std::size_t end = comma == std::string::npos ? text.size() : comma + 1;
    const std::string part = text.substr(at, end - at);
    if (used > 1 && used + 1 + part.size() > look.width) {
      lines += "\n#";
      used = 1;
    }
    lines += " " + part;
    used += 1 + part.size();
    at = end + 1;
  }
  return lines + "\n";
}

// The lines of one group and placement.
class Lines {
 public:
  Lines(const Row& first, bool with_nccl)
      : type_(std::max<std::size_t>(first.dtype.size(), 4) + 1),
        op_(first.op == kNoOp ? 0 : std::max<std::size_t>(first.op.size(), 5) + 1),
        root_(has_root_of(first) ? 5 : 0),
        algorithm_(longest_name(first)),
        with_nccl_(with_nccl) {}

  std::string heading(const Row& first) const {
    const bool tensors = first.hidden > 0;
    const std::string over = first.in_place ? "in-place" : "out-of-place";
    std::string text = fmt::format("#\n#{:>{}}", over, lead() + (kSide + over.size()) / 2 - 1);
    if (with_nccl_) text += fmt::format("{:>{}}", "NCCL", line_width() - text.size() + 2 - 9);
    text += fmt::format("\n#{:>9}{:>11}", "size", tensors ? "shape" : "count");
    text += cell("type", type_) + cell("redop", op_) + cell("root", root_);
    text += fmt::format("{:>8}{:>8}{:>8}{:>7}  {:{}}", "time", "algbw", "busbw", "#wrong",
                        "algorithm", with_nccl_ ? algorithm_ : 0);
    if (with_nccl_) text += fmt::format("{:>8}{:>9}", "time", "speed-up");
    text += fmt::format("\n#{:>9}{:>11}", "(B)", tensors ? "(r x hid)" : "(elements)");
    text +=
        fmt::format("{:{}}{:>8}{:>8}{:>8}", "", type_ + op_ + root_, "(us)", "(GB/s)", "(GB/s)");
    if (with_nccl_) text += fmt::format("{:{}}{:>8}", "", 7 + 2 + algorithm_, "(us)");
    return text + "\n";
  }

  // `shown` is one of `rows`.
  std::string line(const Row& shown, const std::vector<const Row*>& rows, const Look& look) const {
    const std::string shape = shape_text(shown);
    std::string text = fmt::format("{:>10}{:>11}", shown.bytes,
                                   shape.empty() ? fmt::format("{}", shown.count) : shape);
    text +=
        cell(shown.dtype, type_) + cell(shown.op, op_) + cell(fmt::format("{}", shown.root), root_);
    text += fmt::format("{:>8}{:>8.2f}{:>8.2f}", time_text(shown.time_us.p50), shown.algbw_gbps,
                        shown.busbw_gbps);
    const std::uint64_t wrong = shown.wrong.value_or(0);
    const std::string wrongs = fmt::format("{:>7}", shown.wrong ? fmt::format("{}", wrong) : "N/A");
    text += wrong > 0 ? look.paint(Ink::kRed, wrongs) : wrongs;
    const std::size_t name = shown.algorithm.size();
    text += "  " + (shown.chosen ? look.paint(Ink::kBold, shown.algorithm) : shown.algorithm);
    if (!with_nccl_) return text + "\n";
    const Row* nccl = row_of_algorithm(rows, kNcclName);
    const bool comparable = nccl != nullptr && shown.time_us.p50 > 0;
    return text + fmt::format("{:{}}{:>8}{:>9}\n", "", algorithm_ - std::min(name, algorithm_),
                              nccl == nullptr ? "n/a" : time_text(nccl->time_us.p50),
                              comparable
                                  ? fmt::format("{:.2f}x", nccl->time_us.p50 / shown.time_us.p50)
                                  : "n/a");
  }

 private:
  static constexpr std::size_t kSide = 8 + 8 + 8 + 7;

  static bool has_root_of(const Row& row) {
    const auto collective = parse_collective(row.collective);
    return collective.is_ok() && has_root(*collective);
  }
  // Nothing where the column is not there.
  static std::string cell(const std::string& text, std::size_t width) {
    return width == 0 ? std::string() : fmt::format("{:>{}}", text, width);
  }
  std::size_t lead() const { return 10 + 11 + type_ + op_ + root_; }
  std::size_t line_width() const { return lead() + kSide + 2 + algorithm_ + 8 + 9; }

  std::size_t type_, op_, root_, algorithm_;  // widths; 0: no such column
  bool with_nccl_;
};

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

std::string calibration_lines(const Calibration& c) {
  std::string text;
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

class TablePrinter : public Printer {
 public:
  TablePrinter(const std::vector<std::string>& asked, const std::string& sweep, const Look& look)
      : asked_(asked), sweep_(sweep), look_(look) {}

  std::string begin(const Record& record) override {
    return print_environment(record) + (sweep_.empty() ? "" : comment(sweep_, look_));
  }

  std::string add(std::span<const Row> rows) override {
    std::string text;
    for (const Group& group : groups_of(rows)) {
      if (!rows_.empty() && !same_group(rows_.front(), group.first())) text += end_group();
      for (const bool in_place : {false, true}) text += add_side(group, in_place);
    }
    return text;
  }

  std::string end(const Record& record) override {
    std::string text = end_group();
    if (record.environment.gpus > 0) {
      text +=
          fmt::format("# NVLink multicast     : {}\n", record.environment.multicast ? "on" : "off");
    }
    return text + calibration_lines(record.environment.calibration);
  }

 private:
  std::string add_side(const Group& group, bool in_place);
  std::string end_group();
  std::string sums() const;

  const std::vector<std::string> asked_;
  const std::string sweep_;
  const Look look_;
  std::vector<Row> rows_;       // of the group that is being printed
  std::optional<Lines> lines_;  // of its placement that is being printed
  bool in_place_ = false;
  double bandwidths_ = 0;  // bus bandwidths of its lines
  std::size_t count_ = 0;
  bool without_auto_ = false;  // a line shows an algorithm that auto does not take
};

std::string TablePrinter::add_side(const Group& group, bool in_place) {
  Group side;
  std::ranges::copy_if(group.rows, std::back_inserter(side.rows),
                       [&](const Row* row) { return row->in_place == in_place; });
  if (side.rows.empty()) return {};
  std::string text;
  if (rows_.empty()) text += "#\n" + comment(title_of(side), look_);
  if (!lines_ || in_place != in_place_) {
    const bool nccl = has(asked_, kNcclName) || has(algorithms_of(side), kNcclName);
    lines_.emplace(side.first(), nccl);
    in_place_ = in_place;
    text += lines_->heading(side.first());
  }
  for (const SizeView& size : sizes_of(side)) {
    const std::vector<const Row*>& rows = in_place ? size.in_place : size.out_of_place;
    const Row& shown = *chosen_or_fastest(rows);
    without_auto_ |= !shown.chosen;
    bandwidths_ += shown.busbw_gbps;
    ++count_;
    text += lines_->line(shown, rows, look_);
  }
  for (const Row* row : side.rows) rows_.push_back(*row);
  return text;
}

// nccl-tests' last lines.
std::string TablePrinter::sums() const {
  std::uint64_t wrong = 0;
  bool checked = false;
  for (const Row& row : rows_) {
    wrong += row.wrong.value_or(0);
    checked |= row.wrong.has_value();
  }
  const std::string judged =
      "# Out of bounds values : " +
      (checked ? fmt::format("{} {}", wrong, wrong > 0 ? "FAILED" : "OK") : "not checked");
  return (wrong > 0 ? look_.paint(Ink::kRed, judged) : judged) +
         fmt::format("\n# Avg bus bandwidth    : {:.4f}\n",
                     bandwidths_ / static_cast<double>(count_));
}

// Some size and placement has rows that its line does not show.
bool has_more_than_its_lines(const Group& group) {
  for (const SizeView& size : sizes_of(group)) {
    for (const auto& rows : {size.out_of_place, size.in_place}) {
      const Row* shown = chosen_or_fastest(rows);
      const bool more = std::ranges::any_of(
          rows, [&](const Row* row) { return row != shown && row->algorithm != kNcclName; });
      if (more) return true;
    }
  }
  return false;
}

std::string TablePrinter::end_group() {
  if (rows_.empty()) return {};
  Group group;
  for (const Row& row : rows_) group.rows.push_back(&row);
  std::string text;
  if (without_auto_) {
    text += "# where what auto takes was not measured, a line shows the fastest algorithm\n";
  }
  if (has_more_than_its_lines(group)) text += print_algorithms(group, asked_, look_);
  text += copies(group) + emulations(group) + sums();
  rows_.clear();
  lines_.reset();
  bandwidths_ = 0;
  count_ = 0;
  without_auto_ = false;
  return text;
}

}  // namespace

std::string print_environment(const Record& record) {
  const Environment& e = record.environment;
  std::string text =
      fmt::format("# tutti {}{} on {}, {}\n", record.tutti,
                  record.commit.empty() ? "" : " (" + record.commit + ")", e.host, e.date);
  if (e.gpus == 0) return text;
  text += fmt::format("# {} x {}, driver {}, CUDA {}, NCCL {}\n", e.gpus, e.gpu, e.driver, e.cuda,
                      e.nccl.empty() ? "not found" : e.nccl);
  const std::string why = e.why_no_multicast.empty() ? "" : " (" + e.why_no_multicast + ")";
  return text + fmt::format("# NVLink multicast: {}{}\n", e.multicast ? "on" : "off", why);
}

std::unique_ptr<Printer> make_table_printer(const BenchOptions& options, const Look& look) {
  const auto [least, most] = std::ranges::minmax(options.bytes);
  const bool graph = options.mode == Mode::kGraph;
  return std::make_unique<TablePrinter>(
      options.algorithms,
      fmt::format(
          "minBytes {}, maxBytes {}, sizes: {}, warmup iters: {}, iters: {}, validation: {}, "
          "graph: {}",
          least, most, options.bytes.size(), options.warmup, options.iterations,
          options.check ? 1 : 0, graph ? options.graph_operations : 0),
      look);
}

std::string print_table(const Record& record, const std::vector<std::string>& asked,
                        const Look& look) {
  return TablePrinter(asked, "", look).whole(record);
}

}  // namespace tutti::cli
