// Runs one cell after the other on one rank.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "conformance/cell.hpp"
#include "support/group.hpp"
#include "support/workbench.hpp"

namespace tutti::test {

class CellRunner {
 public:
  // Makes the buffers for all of `cells`. Collective.
  CellRunner(Rank& rank, const std::vector<Cell>& cells);

  // Why this machine cannot run the cell: NCCL is not installed. Empty if it can.
  std::string why_not(const Cell& cell) const;

  // Empty if the result is right. Throws where the library returns an error.
  std::string run(const Cell& cell);

 private:
  std::string run_eager(const Cell& cell, Workbench& bench);
  std::string run_graph(const Cell& cell, Workbench& bench);
  void finish();

  Rank& rank_;
  OwnedStream stream_;
  std::map<BufferKind, std::unique_ptr<Workbench>> benches_;
};

}  // namespace tutti::test
