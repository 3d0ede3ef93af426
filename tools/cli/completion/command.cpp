#include "completion/command.hpp"

#include <array>
#include <string_view>

#include "base/nearest.hpp"
#include "completion/words.hpp"
#include "exit_code.hpp"
#include "tell.hpp"

namespace tutti::cli {
namespace {

struct Shell {
  std::string_view name;
  std::string (*script)(const std::vector<CompletedCommand>& commands);
};
constexpr std::array<Shell, 3> kShells = {
    {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}}};

}  // namespace

int run_completion(const CLI::App& app, const std::string& shell) {
  std::vector<std::string_view> known;
  for (const Shell& each : kShells) {
    known.push_back(each.name);
    if (each.name != shell) continue;
    tell_as_is(stdout, each.script(completed_commands(app)));
    return kSuccess;
  }
  tell_line(stderr, "tutti completion: unknown shell '{}'{}", shell, alternatives(shell, known));
  return kUsage;
}

}  // namespace tutti::cli
