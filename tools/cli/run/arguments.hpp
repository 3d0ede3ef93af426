// The options of `tutti run`, as CLI11 parses them.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

#include "run/options.hpp"

namespace tutti::cli {

// `arguments` must outlive the parsing.
void add_run_options(CLI::App& run, RunArguments& arguments);

// The part that `tutti bench` has, too.
void add_hosts_options(CLI::App& command, HostsArguments& arguments);

// Takes the program and its arguments off the end of `words`, which begin with "run": the program
// is the first word that is neither an option of `run` nor the value of one, or comes after "--".
std::vector<std::string> take_program(const CLI::App& run, std::vector<std::string>& words);

}  // namespace tutti::cli
