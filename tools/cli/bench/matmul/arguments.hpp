// The options of `tutti bench matmul`, as CLI11 parses them.
#pragma once

#include <CLI/CLI.hpp>

#include "bench/matmul/options.hpp"

namespace tutti::cli {

// What the help page says where nothing is given.
struct MatmulSamplingTexts {
  const char *samples, *warmup, *seconds;
};

// `arguments` must outlive the parsing.
void add_matmul_options(CLI::App& matmul, MatmulArguments& arguments);

// Parts of it.
void add_matmul_extents(CLI::App& matmul, MatmulArguments& arguments, const char* otherwise);
void add_matmul_sampling(CLI::App& matmul, MatmulArguments& arguments,
                         const MatmulSamplingTexts& texts);
void add_matmul_results(CLI::App& matmul, MatmulArguments& arguments);

}  // namespace tutti::cli
