// The options of `tutti model`, as CLI11 parses them.
#pragma once

#include <CLI/CLI.hpp>

#include "model/options.hpp"

namespace tutti::cli {

// `arguments` must outlive the parsing.
void add_model_options(CLI::App& command, ModelArguments& arguments);

}  // namespace tutti::cli
