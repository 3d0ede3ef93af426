#include <fmt/format.h>

#include "completion/quote.hpp"
#include "completion/words.hpp"

namespace tutti::cli {
namespace {

constexpr std::string_view kZshStart = R"(#compdef tutti
# zsh completion of tutti, printed by `tutti completion zsh`
_tutti() {
  local command=tutti i
  local -a arguments options
  for ((i = 2; i < CURRENT; ++i)); do
    case "$command ${words[i]}" in
)";

constexpr std::string_view kZshEnd = R"(  esac
  if [[ ${words[CURRENT]} == -* || ${#arguments} -eq 0 ]]; then
    _describe -o option options
  else
    _describe argument arguments
  fi
}
if [[ ${funcstack[1]} == _tutti ]]; then
  _tutti "$@"
else
  compdef _tutti tutti
fi
)";

std::string zsh_call(const CompletedValue& value) {
  if (value.is_file) return "_files";
  if (value.is_folder) return "_files -/";
  if (value.words.empty()) return ":";
  const std::string words = fmt::format("{}", fmt::join(value.words, " "));
  if (value.is_list) return fmt::format("compset -P '*,'; compadd -S '' -- {}", words);
  return fmt::format("compadd -- {}", words);
}

// The first word that is neither an option nor its value is the program.
std::string zsh_search_for_program(const CompletedCommand& command) {
  return fmt::format(R"(      for ((i = 3; i < CURRENT; ++i)); do
        case "${{words[i]}}" in
          --) ((++i)); break ;;
          {}) ((++i)) ;;
          -*) ;;
          *) break ;;
        esac
      done
      if [[ ${{words[CURRENT]}} != -* ]] || ((i < CURRENT)); then
        shift $((i - 1)) words
        ((CURRENT -= i - 1))
        _normal
        return
      fi
)",
                     pattern_of_valued(command));
}

std::string zsh_description(const std::string& name, const std::string& text) {
  return "        " + shell_quoted(fmt::format("{}:{}", name, text)) + "\n";
}

std::string zsh_words_after(const CompletedCommand& command) {
  std::string arguments, options;
  for (const std::string& word : command.arguments) {
    arguments += "        " + shell_quoted(word) + "\n";
  }
  for (const CLI::App* inner : command.commands) {
    arguments += zsh_description(inner->get_name(), inner->get_description());
  }
  for (const CompletedOption& option : command.options) {
    for (const std::string& name : option.names) options += zsh_description(name, option.text);
  }
  return fmt::format("    {})\n{}      arguments=(\n{}      )\n      options=(\n{}      ) ;;\n",
                     shell_quoted(command.name),
                     command.runs_program ? zsh_search_for_program(command) : "", arguments,
                     options);
}

}  // namespace

std::string zsh_script(const std::vector<CompletedCommand>& commands) {
  std::string script(kZshStart);
  script += fmt::format("      {}) command+=\" ${{words[i]}}\" ;;\n    esac\n  done\n",
                        pattern_of_commands(commands));
  script += "  case \"$command ${words[CURRENT-1]}\" in\n";
  for (const CompletedCommand& command : commands) {
    for (const CompletedOption& option : command.options) {
      if (!option.has_value) continue;
      script += fmt::format("    {}) {}; return ;;\n", pattern_of_option(command, option),
                            zsh_call(option.value));
    }
  }
  script += "  esac\n  case \"$command\" in\n";
  for (const CompletedCommand& command : commands) script += zsh_words_after(command);
  script += kZshEnd;
  return script;
}

}  // namespace tutti::cli
