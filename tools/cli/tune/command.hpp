// `tutti tune`.
#pragma once

#include <string>

#include "tune/options.hpp"

namespace tutti::cli {

// Checks, measures, and writes the table size by size. Returns the exit code.
int run_tune(const TuneArguments& arguments, const std::string& command_line);

}  // namespace tutti::cli
