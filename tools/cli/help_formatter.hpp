// How help pages look.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace tutti::cli {

// At most 100 columns: what a command is for, how it is called, its commands, its options by groups
// with their defaults, and examples, which are the footer of the command.
class HelpFormatter final : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
};

}  // namespace tutti::cli
