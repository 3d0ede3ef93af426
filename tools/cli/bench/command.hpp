// `tutti bench`.
#pragma once

#include "bench/options.hpp"

namespace tutti::cli {

// Checks, runs, prints and writes. Returns the exit code.
int run_bench(const BenchArguments& arguments, const std::string& command_line);

}  // namespace tutti::cli
