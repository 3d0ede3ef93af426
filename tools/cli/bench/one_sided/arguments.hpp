// The options of `tutti bench put` and `tutti bench get`, as CLI11 parses them.
#pragma once

#include <CLI/CLI.hpp>

#include "bench/one_sided/options.hpp"

namespace tutti::cli {

// `arguments` must outlive the parsing.
void add_one_sided_options(CLI::App& command, OneSidedArguments& arguments);

}  // namespace tutti::cli
