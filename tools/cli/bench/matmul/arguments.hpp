// The options of `tutti bench matmul`, as CLI11 parses them.
#pragma once

#include <CLI/CLI.hpp>

#include "bench/matmul/options.hpp"

namespace tutti::cli {

// `arguments` must outlive the parsing.
void add_matmul_options(CLI::App& matmul, MatmulArguments& arguments);

}  // namespace tutti::cli
