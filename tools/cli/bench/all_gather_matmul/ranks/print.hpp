// Rows of `tutti bench all_gather_matmul` with several ranks as text for people.
#pragma once

#include <memory>
#include <string>

#include "bench/printers/printers.hpp"

namespace tutti::cli {

// A line for each row, as soon as its setting is measured.
std::unique_ptr<Printer> make_gathered_table_printer(const Look& look);
// The same for pages.
Table gathered_table_of(const Group& group);
// "bf16, B row-major, backend cuda, cuBLASLt 13.0.2, 2 ranks (processes)"
std::string title_of_gathered(const Group& group);

}  // namespace tutti::cli
