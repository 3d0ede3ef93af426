#include "run/options.hpp"

#include <unistd.h>

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <iterator>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/process_environment.hpp"
#include "base/try.hpp"
#include "parse.hpp"
#include "run/environment.hpp"

namespace tutti::cli {
namespace {

constexpr int kMostGrace = 24 * 60 * 60;

bool is_program(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

std::string from_environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string first_given(std::initializer_list<std::string> texts) {
  const auto* const given = std::ranges::find_if_not(texts, &std::string::empty);
  return given == texts.end() ? "" : *given;
}

// Words between blanks; the first is a program.
Result<std::vector<std::string>> check_ssh(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words(std::istream_iterator<std::string>(in), {});
  if (words.empty()) return wrong("--ssh and TUTTI_SSH name a command, such as 'ssh -p 2222'");
  auto program = find_program(words.front(), from_environment("PATH"));
  if (!program.is_ok()) {
    return wrong(
        fmt::format("--hosts needs ssh: {}; install it, or name another command with --ssh",
                    program.status().message()));
  }
  words.front() = *std::move(program);
  return words;
}

Status check_names(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const bool has_value = name.find('=') != std::string::npos;
    if (name.starts_with('=')) return wrong(fmt::format("--env '{}' has no name", name));
    if (has_value || std::getenv(name.c_str()) != nullptr) continue;
    return wrong(
        fmt::format("--env {}: there is no such variable here; give {}=VALUE", name, name));
  }
  return Status::ok();
}

Result<HostsOptions> check_hosts(const HostsArguments& arguments) {
  HostsOptions options;
  TUTTI_ASSIGN(options.hosts, parse_hosts(arguments.hosts));
  TUTTI_ASSIGN(options.ssh, check_ssh(first_given({arguments.ssh, from_environment("TUTTI_SSH"),
                                                   "ssh -o BatchMode=yes"})));
  std::error_code error;
  options.remote_tutti = first_given(
      {arguments.remote_tutti, std::filesystem::read_symlink("/proc/self/exe", error).string()});
  if (options.remote_tutti.empty()) return wrong("give the path of tutti there: --remote-tutti");
  options.root.address = options.hosts.front().address;
  const std::string root = first_given({arguments.root, from_environment("TUTTI_ROOT")});
  if (!root.empty()) {
    TUTTI_ASSIGN(options.root, parse_root(root));
  }
  options.folder = first_given({arguments.folder, std::filesystem::current_path(error).string()});
  TUTTI_TRY(check_names(arguments.environment));
  options.settings = settings_to_pass(process_environment(), arguments.environment);
  return options;
}

Status check_ranks(const RunArguments& arguments, RunOptions& options) {
  if (!arguments.ranks.empty()) {
    TUTTI_ASSIGN(options.ranks, parse_int("--ranks", arguments.ranks, {1, kMostRanks}));
  }
  if (arguments.on.hosts.empty()) {
    if (!arguments.on.any_given()) return Status::ok();
    return wrong("--ssh, --remote-tutti, --root, --folder and --env need --hosts");
  }
  TUTTI_ASSIGN(options.hosts, check_hosts(arguments.on));
  const int ranks = count_ranks(options.hosts->hosts);
  if (!arguments.ranks.empty() && options.ranks != ranks) {
    return wrong(
        fmt::format("-n says {} ranks, and --hosts {}; leave out -n, or write the ranks of "
                    "each host: a:4,b:4",
                    options.ranks, ranks));
  }
  options.ranks = ranks;
  return Status::ok();
}

}  // namespace

bool HostsArguments::any_given() const {
  return !environment.empty() || !first_given({hosts, ssh, remote_tutti, root, folder}).empty();
}

Result<std::string> find_program(const std::string& name, std::string_view path) {
  if (name.find('/') != std::string::npos) {
    if (is_program(name)) return name;
    const int error = ::access(name.c_str(), X_OK) == 0 ? EACCES : errno;
    return wrong(fmt::format("cannot run '{}': {}", name, std::strerror(error)));
  }
  while (!path.empty()) {
    const std::string_view folder = path.substr(0, path.find(':'));
    path.remove_prefix(std::min(path.size(), folder.size() + 1));
    const std::string found = fmt::format("{}/{}", folder.empty() ? "." : folder, name);
    if (is_program(found)) return found;
  }
  const std::string here =
      is_program("./" + name) ? fmt::format("; did you mean './{}'?", name) : "";
  return wrong(fmt::format("there is no program '{}' in PATH{}", name, here));
}

Result<RunOptions> check_run_arguments(const RunArguments& arguments) {
  RunOptions options{.bind = !arguments.no_bind, .prefix = !arguments.no_prefix};
  TUTTI_TRY(check_ranks(arguments, options));
  if (!arguments.grace.empty()) {
    TUTTI_ASSIGN(const int seconds, parse_int("--grace", arguments.grace, {0, kMostGrace}));
    options.grace = std::chrono::seconds(seconds);
  }
  if (arguments.ranks.empty() && !options.hosts) return wrong("how many ranks? Give -n N");
  if (arguments.program.empty()) return wrong("which program? It comes after the options");
  options.program = arguments.program.front();
  if (!options.hosts) {
    TUTTI_ASSIGN(options.program, find_program(options.program, from_environment("PATH")));
  }
  options.arguments.assign(arguments.program.begin() + 1, arguments.program.end());
  return options;
}

}  // namespace tutti::cli
