// Fits a link to measured results: to half of the sizes, and of three numbers of ranks or more to
// every second one. The others say how far the link is from what it was not fitted to.
#pragma once

#include <span>
#include <vector>

#include "model/links.hpp"
#include "model/measured.hpp"
#include "tutti/status.hpp"

namespace tutti::model {

struct SplitCalls {
  std::vector<MeasuredCall> fitted, held_out;
};
// By order: the first size is fitted, the second held out, and so on; likewise numbers of ranks.
SplitCalls split_calls(std::span<const MeasuredCall> calls);

struct FittedLinks {
  Links links;
  Errors fitted, held_out;
  std::vector<ComparedCall> held_out_calls;
};

// What is fitted of `start`, if it is not 0 there: delay, payload part and burst of the link
// between nodes, and the costs of the processor. kInvalidArgument: too few sizes to hold any out.
Result<FittedLinks> fit(std::span<const MeasuredCall> calls, const Links& start,
                        int ranks_per_node);

}  // namespace tutti::model
