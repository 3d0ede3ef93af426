#include "run/options.hpp"

#include <unistd.h>

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "base/try.hpp"
#include "parse.hpp"

namespace tutti::cli {
namespace {

constexpr int kMostRanks = 1024, kMostGrace = 24 * 60 * 60;

bool is_program(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

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
  if (!arguments.ranks.empty()) {
    TUTTI_ASSIGN(options.ranks, parse_int("--ranks", arguments.ranks, {1, kMostRanks}));
  }
  if (!arguments.grace.empty()) {
    TUTTI_ASSIGN(const int seconds, parse_int("--grace", arguments.grace, {0, kMostGrace}));
    options.grace = std::chrono::seconds(seconds);
  }
  if (arguments.ranks.empty()) return wrong("how many ranks? Give -n N");
  if (arguments.program.empty()) return wrong("which program? It comes after the options");
  const char* const path = std::getenv("PATH");
  TUTTI_ASSIGN(options.program,
               find_program(arguments.program.front(), path == nullptr ? "" : path));
  options.arguments.assign(arguments.program.begin() + 1, arguments.program.end());
  return options;
}

}  // namespace tutti::cli
