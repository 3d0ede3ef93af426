// What the command says of a command line that it does not understand.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace tutti::cli {

// "tutti bench overlap"
std::string full_name(const CLI::App& command);

// "tutti bench: unknown option '--iters'; did you mean '--iterations'?", of `app` that has parsed
// what was typed. `error` is what CLI11 says of it.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error);

// The same where an option has an empty value: scripts give one where a variable is not set. Empty
// where none has.
std::string empty_value_error(const CLI::App& app);

// The command that words name, below `app`. Null and a text that says which is unknown.
const CLI::App* find_command(const CLI::App& app, const std::vector<std::string>& words,
                             std::string& why_not);

}  // namespace tutti::cli
