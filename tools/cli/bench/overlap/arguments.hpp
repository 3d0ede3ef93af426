// The options of `tutti bench overlap`, as CLI11 parses them.
#pragma once

#include <CLI/CLI.hpp>

#include "bench/overlap/options.hpp"

namespace tutti::cli {

// `arguments` must outlive the parsing.
void add_overlap_options(CLI::App& overlap, OverlapArguments& arguments);

}  // namespace tutti::cli
