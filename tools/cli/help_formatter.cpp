#include "help_formatter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "value_types.hpp"

namespace tutti::cli {
namespace {

constexpr std::size_t kColumns = 100;
// Where texts start.
constexpr std::size_t kCommandTexts = 15, kOptionTexts = 34;

using Options = std::vector<const CLI::Option*>;

// `text` after what stands in the line already, from column `start` on, broken between words.
void add_text(std::string& page, std::size_t column, std::size_t start, std::string_view text) {
  if (column + 2 > start) page += "\n", column = 0;
  page.append(start - column, ' ');
  column = start;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (column > start && column + 1 + word.size() > kColumns) {
      page += "\n" + std::string(start, ' ');
      column = start;
    } else if (column > start) {
      page += ' ';
      ++column;
    }
    page += word;
    column += word.size();
  }
  page += "\n";
}

// "-n, --iterations N"
std::string shown_with_type(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  std::string shown =
      fmt::format("{}{}", option.get_snames().empty() ? "    " : "", fmt::join(names, ", "));
  if (option.get_items_expected_max() > 0) shown += " " + option.get_type_name();
  return shown;
}

std::string with_default(const CLI::Option& option) {
  const std::string& text = option.get_description();
  const std::string value = option.get_default_str();
  return value.empty() ? text : fmt::format("{} (default: {})", text, value);
}

std::string usage_of(const CLI::Option& positional) {
  const std::string& type = positional.get_type_name();
  const std::string name = type.find('|') == std::string::npos ? type : fmt::format("({})", type);
  const bool several = positional.get_items_expected_max() > 1 && type != kProgramType;
  const char* const more = several ? "..." : "";
  return positional.get_default_str().empty() ? name + more : fmt::format("[{}{}]", name, more);
}

bool has_commands(const CLI::App& app) { return !app.get_subcommands({}).empty(); }

Options positionals_of(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return option->get_positional(); });
}

std::string usage(const CLI::App& app, const std::string& name) {
  std::string own;
  for (const CLI::Option* positional : positionals_of(app)) {
    own += " " + usage_of(*positional);
  }
  std::string page;
  if (!own.empty() || !has_commands(app)) {
    page = fmt::format("Usage: {} [OPTIONS]{}\n", name, own);
  }
  if (has_commands(app)) {
    page += fmt::format("{} {} COMMAND ...\n", page.empty() ? "Usage:" : "      ", name);
  }
  return page;
}

void add_commands(std::string& page, const CLI::App& app) {
  if (!has_commands(app)) return;
  page += "\nCommands:\n";
  for (const CLI::App* command : app.get_subcommands({})) {
    page += "  " + command->get_name();
    add_text(page, 2 + command->get_name().size(), kCommandTexts, command->get_description());
  }
}

void add_positionals(std::string& page, const CLI::App& app) {
  for (const CLI::Option* positional : positionals_of(app)) {
    page += "\n  " + positional->get_type_name();
    add_text(page, 2 + positional->get_type_name().size(), kCommandTexts,
             with_default(*positional));
  }
}

void add_options(std::string& page, const std::string& group, const Options& options) {
  if (options.empty()) return;
  page += fmt::format("\n{}:\n", group);
  for (const CLI::Option* option : options) {
    const std::string shown = shown_with_type(*option);
    page += "  " + shown;
    add_text(page, 2 + shown.size(), kOptionTexts, with_default(*option));
  }
}

// What every page has comes last. An option without a group is for tests.
void add_groups(std::string& page, const CLI::App& app) {
  const auto is_common = [&](const CLI::Option* option) {
    return option == app.get_help_ptr() || option == app.get_version_ptr();
  };
  for (const std::string& group : app.get_groups()) {
    if (group.empty()) continue;
    add_options(page, group, app.get_options([&](const CLI::Option* option) {
      return option->get_group() == group && !option->get_positional() && !is_common(option);
    }));
  }
  add_options(page, "Other", app.get_options(is_common));
}

}  // namespace

std::string HelpFormatter::make_help(const CLI::App* app, std::string name,
                                     CLI::AppFormatMode /*mode*/) const {
  std::string page = fmt::format("{}\n\n{}", app->get_description(), usage(*app, name));
  add_positionals(page, *app);
  add_commands(page, *app);
  add_groups(page, *app);
  if (!app->get_footer().empty()) page += fmt::format("\nExamples:\n{}", app->get_footer());
  return page;
}

}  // namespace tutti::cli
