// Which rows of a collective can run in a group, and as what.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/options.hpp"
#include "bench/rank.hpp"
#include "tutti/communicator.hpp"

namespace tutti::cli {

// A row that is to be measured.
struct Runnable {
  std::string algorithm;  // "one_shot"
  Plan plan;
  bool chosen = false;  // what auto takes
};

// Every rank makes the same calls in the same order.
class RunnableRows {
 public:
  RunnableRows(Communicator& communicator, const BenchOptions& options, const Reporter& reporter)
      : communicator_(communicator), options_(options), report_(reporter) {}

  // Collective. Makes NCCL's communicators where a row that is asked for is NCCL's; before there is
  // memory, since what is allocated from then on is made a window.
  Status open();

  // What the row that `query` names would run; no name: what is chosen. kUnsupported, kUnavailable
  // say why not.
  Result<Plan> plan(const Communicator::Query& query) const;
  // The same; nothing, which is reported once for each row, where it cannot run.
  Result<std::optional<Plan>> plan_or_skip(const Communicator::Query& query);
  // Those that were asked for and can run, the same on every rank. `query` names none.
  Result<std::vector<Runnable>> all(const Communicator::Query& query);

 private:
  unsigned needs_of(std::string_view algorithm) const;
  Status check_graphs(std::string_view algorithm) const;
  Status open_windows(unsigned needs);

  Communicator& communicator_;
  const BenchOptions& options_;
  const Reporter& report_;
  Status nccl_, windows_;  // why NCCL, or windows of its, are not there
  std::vector<std::string> skipped_;
};

// A defect that a rank was told to have: ends it here, or stops it, if it is `rank` at `algorithm`.
Status end_as_told(const Injection& injection, int rank, std::string_view algorithm);

}  // namespace tutti::cli
