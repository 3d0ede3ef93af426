// What can be typed after each command: what completion scripts are made of.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace tutti::cli {

struct CompletedValue {
  std::vector<std::string> words = {};  // empty: anything
  bool is_list = false;                 // several words separated by commas
  bool is_file = false, is_folder = false;
};

struct CompletedOption {
  std::vector<std::string> names;  // with their dashes
  std::string text;
  bool has_value = false;
  CompletedValue value = {};
};

struct CompletedCommand {
  std::string name;                       // "tutti bench overlap"
  std::vector<const CLI::App*> commands;  // below it
  std::vector<CompletedOption> options;
  std::vector<std::string> arguments;  // words that are no options: names of collectives
  bool runs_program = false;           // its arguments are another command line
};

// `app` first, then all commands below it.
std::vector<CompletedCommand> completed_commands(const CLI::App& app);

// The scripts.
std::string bash_script(const std::vector<CompletedCommand>& commands);
std::string zsh_script(const std::vector<CompletedCommand>& commands);
std::string fish_script(const std::vector<CompletedCommand>& commands);

}  // namespace tutti::cli
