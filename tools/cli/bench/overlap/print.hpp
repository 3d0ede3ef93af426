// Rows of `tutti bench overlap` as text for people.
#pragma once

#include <string>

#include "bench/printers/printers.hpp"

namespace tutti::cli {

std::string print_overlap_table(const Record& record);
// The table of one group: a line per algorithm.
Table overlap_table_of(const Group& group, const std::string& remark);
std::string print_overlap_markdown(const Record& record);

}  // namespace tutti::cli
