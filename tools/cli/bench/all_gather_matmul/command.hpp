// `tutti bench all_gather_matmul`: the matmul whose A arrives while it runs, on one GPU.
#pragma once

#include <string>

#include "bench/all_gather_matmul/options.hpp"

namespace tutti::cli {

// Returns the exit code. `command_line` is the one that results name.
int run_all_gather_matmul_bench(const AllGatherMatmulArguments& arguments,
                                const std::string& command_line);

}  // namespace tutti::cli
