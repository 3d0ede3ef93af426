// `tutti bench matmul`: the own matmul and cuBLASLt's, on one GPU or on the host.
#pragma once

#include <string>

#include "bench/matmul/measure.hpp"
#include "bench/matmul/options.hpp"
#include "bench/outcome.hpp"

namespace tutti::cli {

// All settings that the lists of `options` multiply to.
std::vector<MatmulSetting> settings_of(const MatmulBenchOptions& options);
void note_matmul(const MeasuredMatmul& measured, Outcome& outcome);
// `status`: of all settings together.
void note_matmul_end(const Status& status, Outcome& outcome);

// Returns the exit code. `command_line` is the one that results name.
int run_matmul_bench(const MatmulArguments& arguments, const std::string& command_line);

}  // namespace tutti::cli
