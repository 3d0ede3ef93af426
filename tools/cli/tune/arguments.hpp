// The options of `tutti tune`, as CLI11 parses them.
#pragma once

#include <CLI/CLI.hpp>

#include "tune/options.hpp"

namespace tutti::cli {

// `arguments` must outlive the parsing.
void add_tune_options(CLI::App& tune, TuneArguments& arguments);

}  // namespace tutti::cli
