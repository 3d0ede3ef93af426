// `tutti completion`: scripts by which a shell completes commands, options and their values.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace tutti::cli {

// Prints the script for `shell` ("bash", "zsh", "fish"), made of the commands below `app`.
int run_completion(const CLI::App& app, const std::string& shell);

}  // namespace tutti::cli
