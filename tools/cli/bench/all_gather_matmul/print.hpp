// Rows of `tutti bench all_gather_matmul` as text for people.
#pragma once

#include <memory>

#include "bench/printers/printers.hpp"

namespace tutti::cli {

// A line for each row, as soon as it is measured.
std::unique_ptr<Printer> make_gated_table_printer(const Look& look);
// A line for each row, for pages: over which bound it is, and what was predicted.
Table gated_table_of(const Group& group);

}  // namespace tutti::cli
