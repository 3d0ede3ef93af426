// Text inside scripts of shells.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "completion/words.hpp"

namespace tutti::cli {

// 'text', in which every `'` is replaced by `quote`: "'\\''" in bash and zsh, "\\'" in fish.
inline std::string shell_quoted(std::string_view text, std::string_view quote = "'\\''") {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'') {
      result += quote;
    } else {
      result += c;
    }
  }
  return result + "'";
}

// 'tutti bench'|'tutti tune': the commands below the first one, as a pattern of bash and zsh.
inline std::string pattern_of_commands(const std::vector<CompletedCommand>& commands,
                                       std::string_view between = "|") {
  std::vector<std::string> names;
  for (std::size_t i = 1; i < commands.size(); ++i) names.push_back(shell_quoted(commands[i].name));
  return fmt::format("{}", fmt::join(names, between));
}

// 'tutti bench -d'|'tutti bench --dtype'
inline std::string pattern_of_option(const CompletedCommand& command,
                                     const CompletedOption& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.names) {
    names.push_back(shell_quoted(fmt::format("{} {}", command.name, name)));
  }
  return fmt::format("{}", fmt::join(names, "|"));
}

// -n|--ranks|--timeout: the options that have a value.
inline std::string pattern_of_valued(const CompletedCommand& command) {
  std::vector<std::string> names;
  for (const CompletedOption& option : command.options) {
    if (option.has_value) names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return fmt::format("{}", fmt::join(names, "|"));
}

}  // namespace tutti::cli
