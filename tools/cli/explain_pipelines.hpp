// `tutti explain all_gather_matmul`.
#pragma once

#include <CLI/CLI.hpp>

#include <optional>
#include <string>
#include <vector>

#include "explain_fused.hpp"
#include "pipelines/description.hpp"
#include "planning/all_gather_matmul.hpp"
#include "planning/table.hpp"
#include "tutti/status.hpp"

namespace tutti::cli {

// The text of each option; empty: not given.
struct ExplainPipelinesArguments {
  std::string algorithms, ranks, m, n, k, dtype, products, protocol, mover, streams, tiles,
      inter_stream_order, rank, format, gpu, layout, backend;
  bool bias = false, symmetric_a = false, gathered = false, symmetric_gathered = false;
};

void add_explain_pipelines_options(CLI::App& command, ExplainPipelinesArguments& arguments);

struct PipelinesQuestion {
  std::vector<pipelines::Description> descriptions;  // one for each algorithm
  std::optional<FusedQuestion> fused = {};           // if its time is asked for
  AllGatherMatmulRequest call = {};                  // one that names no algorithm
  Topology topology = {};                            // of the ranks that make it
  int rank = -1;                                     // whose instructions are shown; -1: no rank's
  bool json = false;
};
Result<PipelinesQuestion> read_pipelines_question(const ExplainPipelinesArguments& arguments);

// What a call runs that names no algorithm, and the programs, as --format says. `table`: null, only
// the programs.
Result<std::string> pipelines_text(const PipelinesQuestion& question,
                                   const TuningTable* table = nullptr);

int run_explain_pipelines(const ExplainPipelinesArguments& arguments);

}  // namespace tutti::cli
