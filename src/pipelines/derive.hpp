// Programs of all_gather + matmul.
#pragma once

#include "pipelines/program.hpp"

namespace tutti::pipelines {

// Shift and ring begin with the rank's own shard, and read it from A itself. A reader or receiver
// posts early what allows a transfer, and with `get` a sender waits for its readers at the end of
// the call.
//
// kInvalidArgument: ranks, streams or tiles out of range, no products, a size that overflows.
Result<Program> derive(const Description& description);

}  // namespace tutti::pipelines
