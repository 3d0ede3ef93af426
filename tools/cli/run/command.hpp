// `tutti run`: a program as several ranks, on this machine or on several hosts.
#pragma once

#include <string>
#include <vector>

#include "run/options.hpp"

namespace tutti::cli {

// The exit code of the first rank that fails, 128 + signal where one killed it; kFailure where a
// host cannot be reached; 0 if nothing fails.
int run_program(const RunArguments& arguments);

// `words`, a command line of this command, as ranks on the hosts that its options name.
int run_on_hosts(const HostsArguments& hosts, const std::vector<std::string>& words);

// `words` without the options that add_hosts_options() adds.
std::vector<std::string> without_hosts_options(const std::vector<std::string>& words);

}  // namespace tutti::cli
