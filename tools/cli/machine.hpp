// What this machine is, as results and commands tell it.
#pragma once

#include <string>

#include "bench/record.hpp"
#include "tutti/types.hpp"

namespace tutti::cli {

// Driver, GPUs and versions; GPUs only where `backend` uses them.
Environment describe_environment(Backend backend, const std::string& command_line);

}  // namespace tutti::cli
