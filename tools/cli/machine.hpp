// What this machine is, as results and commands tell it.
#pragma once

#include <string>

#include "bench/options.hpp"
#include "bench/record.hpp"
#include "tutti/types.hpp"

namespace tutti::cli {

// What options are checked against.
BenchMachine bench_machine();

// Driver, GPUs and versions; GPUs only where `backend` uses them.
Environment describe_environment(Backend backend, const std::string& command_line);

}  // namespace tutti::cli
