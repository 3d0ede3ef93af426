#include <fmt/format.h>

#include "completion/quote.hpp"
#include "completion/words.hpp"

namespace tutti::cli {
namespace {

constexpr std::string_view kFishStart =
    R"(# fish completion of tutti, printed by `tutti completion fish`
function __tutti_after
  set -l command tutti
  for word in (commandline -opc)[2..]
    switch "$command $word"
      case )";

constexpr std::string_view kFishFunctionEnd = R"(
        set command "$command $word"
    end
  end
  test "$command" = "$argv[1]"
end
complete -c tutti -f
)";

std::string in_fish(std::string_view text) { return shell_quoted(text, "\\'"); }

std::string fish_line(const CompletedCommand& command) {
  return fmt::format("complete -c tutti -n {}",
                     in_fish(fmt::format("__tutti_after \"{}\"", command.name)));
}

std::string fish_names(const CompletedOption& option) {
  std::string names;
  for (const std::string& name : option.names) {
    const bool is_long = name.starts_with("--");
    names += fmt::format(" {} {}", is_long ? "-l" : "-s", name.substr(is_long ? 2 : 1));
  }
  return names;
}

std::string fish_value(const CompletedOption& option) {
  if (!option.has_value) return {};
  const CompletedValue& value = option.value;
  if (value.is_file) return " -r -F";
  if (value.is_folder) return " -x -a '(__fish_complete_directories)'";
  if (value.words.empty()) return " -x";
  const std::string words = fmt::format("{}", fmt::join(value.words, " "));
  return value.is_list ? fmt::format(" -x -a '(__fish_append , {})'", words)
                       : fmt::format(" -x -a '{}'", words);
}

void add_to_fish(std::string& script, const CompletedCommand& command) {
  const std::string line = fish_line(command);
  for (const CLI::App* inner : command.commands) {
    script +=
        fmt::format("{} -a {} -d {}\n", line, inner->get_name(), in_fish(inner->get_description()));
  }
  if (!command.arguments.empty()) {
    script += fmt::format("{} -a '{}'\n", line, fmt::join(command.arguments, " "));
  }
  if (command.runs_program) script += line + " -F -a '(__fish_complete_command)'\n";
  for (const CompletedOption& option : command.options) {
    script += fmt::format("{}{}{} -d {}\n", line, fish_names(option), fish_value(option),
                          in_fish(option.text));
  }
}

}  // namespace

std::string fish_script(const std::vector<CompletedCommand>& commands) {
  std::string script(kFishStart);
  script += pattern_of_commands(commands, " ");
  script += kFishFunctionEnd;
  for (const CompletedCommand& command : commands) add_to_fish(script, command);
  return script;
}

}  // namespace tutti::cli
