// The options of `tutti bench all_gather_matmul`, as CLI11 parses them.
#pragma once

#include <CLI/CLI.hpp>

#include "bench/all_gather_matmul/options.hpp"

namespace tutti::cli {

// What is filled in must outlive the parsing.
void add_all_gather_matmul_options(CLI::App& command, AllGatherMatmulArguments& arguments);

}  // namespace tutti::cli
