// Whether a program and lists are well-formed: all numbers are in range. What ranks do together is
// check()'s.
#pragma once

#include <span>
#include <vector>

#include "pipelines/lower.hpp"

namespace tutti::pipelines {

// The rows that a rank's buffer has.
std::size_t rows_in(const Program& program, int rank, BufferId buffer);

// The buffers that nodes name, and that a mover's post says where the peer's rows are.
// kInvalidArgument names the node.
Status validate(const Program& program);

// kInvalidArgument names the rank and the node:
//
// - a rank, stream, word, buffer or row out of range;
// - the two sides of a move, or A and C of a matmul, differ in their numbers of rows;
// - a rank awaits a word of another rank's memory, writes one whose writer it is not, moves rows
//   between two other ranks, or multiplies another rank's;
// - a workspace is used before Allocate, or another rank's buffer before ShareHandles;
// - a stream begins before it has waited for the caller's, or is not joined to that in the end.
Status validate(const Program& program, std::span<const std::vector<Instruction>> ranks);

}  // namespace tutti::pipelines
