// What must hold of a program before it runs.
#pragma once

#include <span>
#include <vector>

#include "pipelines/lower.hpp"

namespace tutti::pipelines {

// Checks that lists are well-formed (validate.hpp), and two calls of all ranks, without a
// synchronisation between them:
//
// - every wait ends: a rank writes the word that it awaits, and no ranks wait for each other. This
//   holds with streams that are independent, and if each rank runs its list as one serial stream
//   (serial.hpp);
// - rows are read after they were written in the same call, and written after all earlier reads and
//   writes of them have ended, whatever the speed of ranks and streams;
// - each call multiplies each row of A, wherever it was moved, into the same row of all Cs, once;
//   and a gathered A that is an output has all rows in order.
//
// In the order of its stream the caller writes the inputs before each call. After it the caller
// reads the outputs, and may use all buffers for something else, workspaces too. kInvalidArgument
// names the nodes that are not ordered, that wait for ever, or that use other rows.
Status check(const Program& program, std::span<const std::vector<Instruction>> ranks);

// The lists of all ranks: what may run.
Result<std::vector<std::vector<Instruction>>> checked(const Program& program);

}  // namespace tutti::pipelines
