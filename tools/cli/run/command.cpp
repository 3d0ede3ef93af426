#include "run/command.hpp"

#include <cstddef>
#include <filesystem>
#include <system_error>

#include "exit_code.hpp"
#include "run/agent.hpp"
#include "run/arguments.hpp"
#include "run/ranks.hpp"
#include "run/remote_ranks.hpp"
#include "tell.hpp"

namespace tutti::cli {

int run_program(const RunArguments& arguments) {
  if (arguments.agent) return run_agent();
  const auto options = check_run_arguments(arguments);
  if (!options.is_ok()) {
    tell_line(stderr, "tutti run: {}; `tutti run --help` says more", options.status().message());
    return kUsage;
  }
  const auto ended = options->hosts ? run_on_hosts(*options) : run_ranks(*options);
  if (ended.is_ok()) return *ended;
  tell_line(stderr, "tutti run: {}", ended.status().message());
  return kFailure;
}

std::vector<std::string> without_hosts_options(const std::vector<std::string>& words) {
  CLI::App options;
  HostsArguments arguments;
  add_hosts_options(options, arguments);
  std::vector<std::string> left;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    const std::string name = words[i].substr(0, equals);
    if (!name.starts_with("--") || options.get_option_no_throw(name) == nullptr) {
      left.push_back(words[i]);
    } else if (equals == std::string::npos) {
      ++i;  // its value
    }
  }
  return left;
}

int run_on_hosts(const HostsArguments& hosts, const std::vector<std::string>& words) {
  RunArguments arguments{.no_prefix = true, .program = without_hosts_options(words), .on = hosts};
  std::error_code error;
  const auto here = std::filesystem::read_symlink("/proc/self/exe", error).string();
  arguments.program.insert(arguments.program.begin(),
                           hosts.remote_tutti.empty() ? here : hosts.remote_tutti);
  return run_program(arguments);
}

}  // namespace tutti::cli
