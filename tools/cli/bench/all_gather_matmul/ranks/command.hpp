// `tutti bench all_gather_matmul` with several ranks.
#pragma once

#include <string>

#include "bench/all_gather_matmul/ranks/options.hpp"

namespace tutti::cli {

// Returns the exit code. `command_line` is the one that results name.
int run_gather_matmul_bench(const AllGatherMatmulArguments& arguments, const BenchMachine& machine,
                            const std::string& command_line);

}  // namespace tutti::cli
