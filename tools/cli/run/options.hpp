// What `tutti run` was asked for: as typed, and as checked.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "run/hosts.hpp"
#include "tutti/status.hpp"

namespace tutti::cli {

// The text of each option; empty: not given.
struct HostsArguments {
  std::string hosts, ssh, remote_tutti, root, folder;
  std::vector<std::string> environment;  // "NAME", "NAME=value"
  bool any_given() const;
};

struct RunArguments {
  std::string ranks, grace;
  bool no_bind = false, no_prefix = false;
  bool agent = false;                // started by a launcher on another host
  std::vector<std::string> program;  // and its arguments
  HostsArguments on;
};

struct HostsOptions {
  std::vector<HostRanks> hosts;
  std::vector<std::string> ssh;  // path, then options
  std::string remote_tutti;      // path there
  RootAddress root;
  std::string folder;                 // where ranks run
  std::vector<std::string> settings;  // that they get
};

struct RunOptions {
  int ranks = 1;
  std::chrono::seconds grace{5};  // between SIGTERM and SIGKILL
  bool bind = true, prefix = true;
  std::string program;  // path; a name if hosts look for it
  std::vector<std::string> arguments;
  std::optional<HostsOptions> hosts;  // none: this machine
};

Result<RunOptions> check_run_arguments(const RunArguments& arguments);

// What a shell would run: `name` itself if it has a slash, else the first program of that name in
// the folders of `path` (separated by colons). kInvalidArgument where there is none.
Result<std::string> find_program(const std::string& name, std::string_view path);

}  // namespace tutti::cli
