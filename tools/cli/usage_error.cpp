#include "usage_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/nearest.hpp"
#include "value_types.hpp"

namespace tutti::cli {

std::string full_name(const CLI::App& command) {
  const CLI::App* const parent = command.get_parent();
  return (parent == nullptr ? "" : full_name(*parent) + " ") + command.get_name();
}

namespace {

// The innermost command that was understood.
const CLI::App& typed(const CLI::App& app) {
  const CLI::App* command = &app;
  for (auto inner = app.get_subcommands(); !inner.empty(); inner = command->get_subcommands()) {
    command = inner.front();
  }
  return *command;
}

// Without the dashes in front, and without a value after '='.
std::string_view bare_name(std::string_view option) {
  option.remove_prefix(std::min(option.find_first_not_of('-'), option.size()));
  return option.substr(0, option.find('='));
}

std::string unknown_option(const CLI::App& command, std::string_view option) {
  std::vector<std::string> names;
  for (const CLI::Option* known : command.get_options()) {
    if (known->get_group().empty()) continue;
    names.insert(names.end(), known->get_lnames().begin(), known->get_lnames().end());
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  const std::string_view meant = nearest(bare_name(option), known);
  const std::string text = fmt::format("unknown option '{}'", option.substr(0, option.find('=')));
  if (!meant.empty()) return fmt::format("{}; did you mean '--{}'?", text, meant);
  return fmt::format("{}; `{} --help` lists the options", text, full_name(command));
}

std::string unknown_command(const CLI::App& app, std::string_view name) {
  std::vector<std::string> names;
  for (const CLI::App* known : app.get_subcommands({})) names.push_back(known->get_name());
  const std::vector<std::string_view> known(names.begin(), names.end());
  const std::string_view meant = nearest(name, known);
  const std::string guess = meant.empty() ? "" : fmt::format(" did you mean '{}'?", meant);
  const std::string list = app.get_parent() == nullptr ? "tutti help" : full_name(app) + " --help";
  return fmt::format("unknown command '{}';{} `{}` lists the commands", name, guess, list);
}

// What CLI11 words for programmers.
std::string other_error(const CLI::App& command, const CLI::ParseError& error) {
  const std::string text = error.what();
  const std::string help = fmt::format("; `{} --help` says more", full_name(command));
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    const auto words = words_of_type(option->get_type_name());
    if (text == name + " is required") {
      const std::string known = fmt::format("; known are {}", fmt::join(words, ", "));
      return fmt::format("{} is missing{}", name, words.empty() ? help : known);
    }
    if (!text.starts_with(name + ":")) continue;
    if (text.ends_with("missing")) {
      return fmt::format("{} needs a value: {}{}", name, option->get_type_name(), help);
    }
    if (option->count() > 1) return fmt::format("{} is given {} times", name, option->count());
  }
  return text + help;
}

const CLI::Option* find_empty(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const auto& values = option->results();
    if (std::find(values.begin(), values.end(), "") != values.end()) return option;
  }
  return nullptr;
}

}  // namespace

std::string usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = typed(app);
  const std::vector<std::string> extra = app.remaining(true);
  const auto option = std::ranges::find_if(
      extra, [](const std::string& word) { return word.size() > 1 && word.starts_with('-'); });
  std::string why;
  if (option != extra.end()) {
    why = unknown_option(command, *option);
  } else if (!extra.empty() && !command.get_subcommands({}).empty()) {
    why = unknown_command(command, extra.front());
  } else if (!extra.empty()) {
    why = fmt::format("unexpected argument '{}'; `{} --help` shows how it is called", extra.front(),
                      full_name(command));
  } else {
    why = other_error(command, error);
  }
  return fmt::format("{}: {}", full_name(command), why);
}

std::string empty_value_error(const CLI::App& app) {
  const CLI::App& command = typed(app);
  const CLI::Option* const empty = find_empty(command);
  if (empty == nullptr) return {};
  return fmt::format("{}: {} has an empty value; leave it out for the default", full_name(command),
                     empty->get_name());
}

const CLI::App* find_command(const CLI::App& app, const std::vector<std::string>& words,
                             std::string& why_not) {
  const CLI::App* command = &app;
  for (const std::string& word : words) {
    const auto inner =
        command->get_subcommands([&](const CLI::App* known) { return known->get_name() == word; });
    if (inner.empty()) {
      why_not = unknown_command(*command, word);
      return nullptr;
    }
    command = inner.front();
  }
  return command;
}

}  // namespace tutti::cli
