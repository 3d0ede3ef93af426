// `tutti tune all_gather_matmul`.
#pragma once

#include <string>

#include "tune/all_gather_matmul/options.hpp"

namespace tutti::cli {

// Checks, measures, and writes the table size by size. Returns the exit code.
int run_tune_all_gather_matmul(const TuneAllGatherMatmulArguments& arguments,
                               const std::string& command_line);

}  // namespace tutti::cli
