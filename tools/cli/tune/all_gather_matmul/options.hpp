// What `tutti tune all_gather_matmul` was asked for: as typed, and as checked.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

#include "bench/all_gather_matmul/mover_options.hpp"
#include "bench/matmul/options.hpp"
#include "planning/all_gather_matmul.hpp"

namespace tutti::cli {

// The text of each option; empty: not given. Of `matmul` what measures matmuls, too.
struct TuneAllGatherMatmulArguments {
  MatmulArguments matmul;
  std::string sizes;  // of a rank's process: instead of extents
  MoverTexts mover;
  bool resume = false;
};

// `arguments` must outlive the parsing.
void add_tune_all_gather_matmul_options(CLI::App& command, TuneAllGatherMatmulArguments& arguments);

struct TuneAllGatherMatmulOptions {
  BenchOptions bench;  // `output` is the table that is written; of its algorithms, none
  std::vector<MatmulExtents> shapes;
  MatrixLayout layout = MatrixLayout::kRowMajor;     // of B
  std::vector<AllGatherMatmulAlgorithm> algorithms;  // without unfused, which is always measured
  MoverOptions mover;                                // of pipelines
  bool resume = false;
};

// Fills in what was not given. `table`: as in check_tune_arguments(). The first invalid value is
// kInvalidArgument.
Result<TuneAllGatherMatmulOptions> check_tune_all_gather_matmul_arguments(
    const TuneAllGatherMatmulArguments& arguments, const BenchMachine& machine,
    const std::string& table);

// What asks this command for the work of one rank.
std::vector<std::string> rank_words(const TuneAllGatherMatmulOptions& options);

}  // namespace tutti::cli
