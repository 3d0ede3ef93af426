// `tutti bench matmul`: the own matmul and cuBLASLt's, on one GPU or on the host.
#pragma once

#include <string>

#include "bench/matmul/options.hpp"

namespace tutti::cli {

// Returns the exit code. `command_line` is the one that results name.
int run_matmul_bench(const MatmulArguments& arguments, const std::string& command_line);

}  // namespace tutti::cli
