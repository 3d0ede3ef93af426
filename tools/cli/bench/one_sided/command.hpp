// `tutti bench put` and `tutti bench get`: from the arguments to the exit code.
#pragma once

#include <string>

#include "bench/one_sided/options.hpp"

namespace tutti::cli {

int run_one_sided_bench(const OneSidedArguments& arguments, const std::string& command_line);

}  // namespace tutti::cli
