// `tutti run`: a program as several ranks on this machine.
#pragma once

#include "run/options.hpp"

namespace tutti::cli {

// The exit code of the first rank that fails, 128 + signal where one killed it; 0 if none does.
int run_program(const RunArguments& arguments);

}  // namespace tutti::cli
