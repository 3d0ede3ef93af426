// What ranks do whose streams are not independent: they share a hardware queue, or are the branches
// of a captured graph, or are one host thread. Each rank then runs its list as one serial stream.
#pragma once

#include <span>
#include <vector>

#include "pipelines/lower.hpp"

namespace tutti::pipelines {

// Runs `calls` calls of all ranks, each rank's instructions one after another, in three orders that
// its streams permit: as they are listed; stream by stream, where each goes as far as its waits for
// streams allow, from the caller's stream on; and likewise from the last stream on. All ranks have
// the same order.
//
// kInvalidArgument names the instructions that wait for ever.
Status execute_serially(std::span<const std::vector<Instruction>> ranks, int calls);

}  // namespace tutti::pipelines
