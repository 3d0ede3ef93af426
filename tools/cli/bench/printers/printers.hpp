// A record as text for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "bench/record.hpp"

namespace tutti::cli {

// Rows that differ in size, algorithm and placement alone: what one table shows.
struct Group {
  std::vector<const Row*> rows;
  const Row& first() const { return *rows.front(); }
};
std::vector<Group> groups_of(const std::vector<Row>& rows);

// Of one message size: the rows of its algorithms, out of place and in place.
struct SizeView {
  std::size_t bytes = 0;
  std::vector<const Row*> out_of_place = {}, in_place = {};
};
std::vector<SizeView> sizes_of(const Group& group);
std::vector<std::string> algorithms_of(const Group& group);  // in order of appearance

// Null where there is none.
const Row* row_of_algorithm(const std::vector<const Row*>& rows, std::string_view algorithm);
const Row* fastest(const std::vector<const Row*>& rows);
// What auto takes, or the fastest where that was not measured.
const Row* chosen_or_fastest(const std::vector<const Row*>& rows);

// "two_shot (1.84x)": the fastest and its speed-up over NCCL, if that was measured.
std::string best_text(const std::vector<const Row*>& rows);
std::string shape_text(const Row& row);    // "32x8192"; empty where it is no tensor
std::string time_text(double us);          // four significant digits or so
std::string title_of(const Group& group);  // "all_reduce, 8 ranks, bf16, sum, cuda, graph, ..."

// A column for each of `asked`, measured or not, then for what else was measured.
std::string print_table(const Record& record, const std::vector<std::string>& asked = {});
std::string print_markdown(const Record& record);
std::string print_csv(const Record& record);

}  // namespace tutti::cli
