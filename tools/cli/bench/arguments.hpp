// The options of `tutti bench`, as CLI11 parses them.
#pragma once

#include <CLI/CLI.hpp>

#include "bench/options.hpp"

namespace tutti::cli {

// `arguments` must outlive the parsing.
void add_bench_options(CLI::App& bench, BenchArguments& arguments);

}  // namespace tutti::cli
