// `tutti bench overlap`: a matmul beside an all_gather.
#pragma once

#include <string>

#include "bench/overlap/options.hpp"

namespace tutti::cli {

// Returns the exit code. `command_line` is what results say they were made by.
int run_overlap(const OverlapArguments& arguments, const std::string& command_line);

}  // namespace tutti::cli
