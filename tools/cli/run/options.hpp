// What `tutti run` was asked for: as typed, and as checked.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "tutti/status.hpp"

namespace tutti::cli {

// The text of each option; empty: not given.
struct RunArguments {
  std::string ranks, grace;
  bool no_bind = false, no_prefix = false;
  std::vector<std::string> program;  // and its arguments
};

struct RunOptions {
  int ranks = 1;
  std::chrono::seconds grace{5};  // between SIGTERM and SIGKILL
  bool bind = true, prefix = true;
  std::string program;  // path
  std::vector<std::string> arguments;
};

Result<RunOptions> check_run_arguments(const RunArguments& arguments);

// What a shell would run: `name` itself if it has a slash, else the first program of that name in
// the folders of `path` (separated by colons). kInvalidArgument where there is none.
Result<std::string> find_program(const std::string& name, std::string_view path);

}  // namespace tutti::cli
