// The options of `tutti bench`, as CLI11 parses them, and those that other commands share.
#pragma once

#include <CLI/CLI.hpp>

#include "bench/options.hpp"

namespace tutti::cli {

// `arguments` must outlive the parsing.
void add_bench_options(CLI::App& bench, BenchArguments& arguments);

// Where, how large, and what type.
void add_sweep_options(CLI::App& command, BenchArguments& arguments);
// How ranks are run.
void add_rank_options(CLI::App& command, BenchArguments& arguments);

}  // namespace tutti::cli
