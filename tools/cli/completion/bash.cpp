#include <fmt/format.h>

#include "completion/quote.hpp"
#include "completion/words.hpp"

namespace tutti::cli {
namespace {

constexpr std::string_view kBashStart =
    R"(# bash completion of tutti, printed by `tutti completion bash`
_tutti_words() { mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur"); }
_tutti_list() {
  local before=
  [[ $cur == *,* ]] && before=${cur%,*},
  compopt -o nospace 2>/dev/null
  mapfile -t COMPREPLY < <(compgen -P "$before" -W "$1" -- "${cur##*,}")
}
_tutti_paths() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen "$1" -- "$cur")
}
_tutti_program() {
  if ((first < COMP_CWORD)) && declare -F _command_offset >/dev/null; then
    _command_offset "$first"
  elif ((first < COMP_CWORD)); then
    _tutti_paths -f
  else
    _tutti_paths -c
  fi
}
_tutti() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
  local command=tutti first arguments= options= i
  COMPREPLY=()
  if [[ $cur == = ]]; then
    cur=
  elif [[ $prev == = ]]; then
    prev=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "$command ${COMP_WORDS[i]}" in
)";

constexpr std::string_view kBashEnd = R"(  esac
  if [[ $cur == -* || -z $arguments ]]; then
    _tutti_words "$options"
  else
    _tutti_words "$arguments"
  fi
}
complete -F _tutti tutti
)";

std::string bash_call(const CompletedValue& value) {
  if (value.is_file) return "_tutti_paths -f";
  if (value.is_folder) return "_tutti_paths -d";
  if (value.words.empty()) return ":";
  return fmt::format("{} {}", value.is_list ? "_tutti_list" : "_tutti_words",
                     shell_quoted(fmt::format("{}", fmt::join(value.words, " "))));
}

// The first word that is neither an option nor its value is the program.
std::string bash_search_for_program(const CompletedCommand& command) {
  return fmt::format(R"(      for ((first = 2; first < COMP_CWORD; ++first)); do
        case "${{COMP_WORDS[first]}}" in
          --) ((++first)); break ;;
          {}) ((++first)) ;;
          -*) ;;
          *) break ;;
        esac
      done
      if [[ $cur != -* ]] || ((first < COMP_CWORD)); then _tutti_program; return; fi
)",
                     pattern_of_valued(command));
}

std::string bash_words_after(const CompletedCommand& command) {
  std::vector<std::string> arguments = command.arguments, options;
  for (const CLI::App* inner : command.commands) arguments.push_back(inner->get_name());
  for (const CompletedOption& option : command.options) {
    options.insert(options.end(), option.names.begin(), option.names.end());
  }
  return fmt::format("    {})\n{}      arguments={}\n      options={} ;;\n",
                     shell_quoted(command.name),
                     command.runs_program ? bash_search_for_program(command) : "",
                     shell_quoted(fmt::format("{}", fmt::join(arguments, " "))),
                     shell_quoted(fmt::format("{}", fmt::join(options, " "))));
}

}  // namespace

std::string bash_script(const std::vector<CompletedCommand>& commands) {
  std::string script(kBashStart);
  script += fmt::format("      {}) command+=\" ${{COMP_WORDS[i]}}\" ;;\n    esac\n  done\n",
                        pattern_of_commands(commands));
  script += "  case \"$command $prev\" in\n";
  for (const CompletedCommand& command : commands) {
    for (const CompletedOption& option : command.options) {
      if (!option.has_value) continue;
      script += fmt::format("    {}) {}; return ;;\n", pattern_of_option(command, option),
                            bash_call(option.value));
    }
  }
  script += "  esac\n  case \"$command\" in\n";
  for (const CompletedCommand& command : commands) script += bash_words_after(command);
  script += kBashEnd;
  return script;
}

}  // namespace tutti::cli
