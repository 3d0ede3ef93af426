#include "completion/words.hpp"

#include <string_view>

#include "value_types.hpp"

namespace tutti::cli {
namespace {

CompletedValue value_of(std::string_view type) {
  CompletedValue value{.words = words_of_type(type), .is_list = type.ends_with(kListEnd)};
  value.is_file = type == "FILE";
  value.is_folder = type == "FOLDER";
  return value;
}

CompletedOption option_of(const CLI::Option& option) {
  CompletedOption completed{.text = option.get_description()};
  for (const std::string& name : option.get_snames()) completed.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) completed.names.push_back("--" + name);
  completed.has_value = option.get_items_expected_max() > 0;
  if (completed.has_value) completed.value = value_of(option.get_type_name());
  return completed;
}

// The words of arguments that are no options.
std::vector<std::string> arguments_of(const CLI::App& app, std::string_view type) {
  if (type != kCommandType) return words_of_type(type);
  const CLI::App* const root = app.get_parent();
  std::vector<std::string> names;
  for (const CLI::App* command : root->get_subcommands({})) names.push_back(command->get_name());
  return names;
}

void add_command(const CLI::App& app, const std::string& before,
                 std::vector<CompletedCommand>& completed) {
  CompletedCommand command{.name = before + app.get_name(), .commands = app.get_subcommands({})};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // for tests
    if (option->get_positional()) {
      command.arguments = arguments_of(app, option->get_type_name());
      command.runs_program = option->get_type_name() == kProgramType;
    } else {
      command.options.push_back(option_of(*option));
    }
  }
  completed.push_back(command);
  for (const CLI::App* inner : command.commands) {
    add_command(*inner, command.name + " ", completed);
  }
}

}  // namespace

std::vector<CompletedCommand> completed_commands(const CLI::App& app) {
  std::vector<CompletedCommand> completed;
  add_command(app, "", completed);
  return completed;
}

}  // namespace tutti::cli
