// A record as text for people and for programs.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/printers/look.hpp"
#include "bench/record.hpp"

namespace tutti::cli {

// Rows that differ in size, algorithm and placement alone: what one table shows.
struct Group {
  std::vector<const Row*> rows;
  const Row& first() const { return *rows.front(); }
};
bool same_group(const Row& a, const Row& b);
std::vector<Group> groups_of(std::span<const Row> rows);

// Of one message size: the rows of its algorithms, out of place and in place.
struct SizeView {
  std::size_t bytes = 0;
  std::vector<const Row*> out_of_place = {}, in_place = {};
};
std::vector<SizeView> sizes_of(const Group& group);
std::vector<std::string> algorithms_of(const Group& group);  // in order of appearance

// A column of a page's table, a curve of its plot: an algorithm out of place, or in place where it
// was measured in place alone.
struct Series {
  std::string algorithm;
  bool in_place = false;
  bool shows(const Row& row) const;
  std::string title() const;  // "two_shot", "torch_two_shot (in place)"
};
std::vector<Series> series_of(const std::vector<const Row*>& rows);  // in order of appearance

// Null where there is none.
const Row* row_of_algorithm(const std::vector<const Row*>& rows, std::string_view algorithm);
const Row* fastest(const std::vector<const Row*>& rows);  // emulated ones behind all others
// What auto takes, or the fastest where that was not measured.
const Row* chosen_or_fastest(const std::vector<const Row*>& rows);

// "two_shot (1.84x)": the fastest and its speed-up over NCCL, if that was measured.
std::string best_text(const std::vector<const Row*>& rows);
std::string shape_text(const Row& row);    // "32x8192"; empty where it is no tensor
std::string time_text(double us);          // four significant digits or so
std::string title_of(const Group& group);  // "all_reduce, 8 ranks, bf16, sum, cuda, graph, ..."

// A record as text that grows: what begin(), add() and end() return is printed one after the other.
class Printer {
 public:
  virtual ~Printer() = default;
  virtual std::string begin(const Record&) { return {}; }
  virtual std::string add(std::span<const Row>) { return {}; }  // as soon as they are measured
  virtual std::string end(const Record& record) = 0;            // which has all rows

  std::string whole(const Record& record);
};
// Of what `options` asked for.
std::unique_ptr<Printer> make_printer(Format format, const BenchOptions& options, const Look& look);
std::unique_ptr<Printer> make_table_printer(const BenchOptions& options, const Look& look);
// Each has those before it.
enum class CsvColumns : std::uint8_t { kCommon, kMatmuls, kArrivals, kGathered };
std::unique_ptr<Printer> make_csv_printer(CsvColumns columns = CsvColumns::kCommon);
using PrintRecord = std::function<std::string(const Record&)>;
std::unique_ptr<Printer> print_at_the_end(PrintRecord print);

// Whether NVLink multicast was used in `records`, from which the rows of `group` and those next to
// them come: "NVLink multicast: off for all libraries; with it: not measured". Empty on the host.
std::string multicast_text(const Group& group, const std::vector<const Record*>& records);

// A table of a page: as Markdown, or as HTML.
struct Cell {
  std::string text;
  bool bold = false;
};
struct Column {
  std::string title;
  bool left = false;  // words; else numbers, to the right
};
struct Table {
  std::string title, remark;  // in bold, and in brackets after it
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
};
std::string to_markdown(const Table& table);

// Of `group`, with columns for `beside`, rows of its kind from elsewhere. `remark`: said on top.
Table table_of(const Group& group, const std::vector<const Row*>& beside,
               const std::string& remark);

// The first lines of a table: by what, where and when.
std::string print_environment(const Record& record);
// `asked`: algorithms in the order of their columns.
std::string print_table(const Record& record, const std::vector<std::string>& asked = {},
                        const Look& look = {});
// One algorithm per column, in as many tables as it takes for lines to fit: a column for each of
// `asked` that was measured, then for what else was measured.
std::string print_algorithms(const Group& group, const std::vector<std::string>& asked,
                             const Look& look);
std::string print_markdown(const Record& record);
std::string print_csv(const Record& record);

}  // namespace tutti::cli
