// `tutti explain`.
#pragma once

#include <functional>
#include <string>

#include "planning/request.hpp"
#include "topology/topology.hpp"
#include "tutti/status.hpp"

namespace tutti::cli {

// The text of each option; empty: not given.
struct ExplainArguments {
  std::string collective, ranks, bytes, rows, hidden, dtype, op, algorithm, buffers, mode, backend,
      gpu, sm_budget;
  bool in_place = false, deterministic = false, split_rows = false, json = false;
};

struct Selection {
  Request request;
  Topology topology;
};

// What this machine has.
struct Libraries {
  int nccl = 0;  // its version, 22809 for 2.28.9; 0: none
  // Whether messages can be sent to other nodes, or why not. Asked only about several nodes, which
  // may all be on one host: a library is loaded for it.
  std::function<Status(bool one_host)> network = [](bool) { return Status::ok(); };
};

// What is asked, of this `machine` or of the one that --gpu names: all its GPUs reach each other
// within a node, NCCL is there and new enough for everything, and there is a network between nodes.
Result<Selection> read_question(const ExplainArguments& arguments, const Machine& machine,
                                const Libraries& libraries);

int run_explain(const ExplainArguments& arguments);

}  // namespace tutti::cli
