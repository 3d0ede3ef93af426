// Operations whose data the wire moves from GPU to GPU itself, without staging. They only move
// data: sums are made on the host, so what adds is staged.
#pragma once

#include <cstddef>

#include "algorithms/network_program.hpp"
#include "executors/network/staged_lane.hpp"

namespace tutti {

// Less of a message or piece is staged: each message of a direct transfer asks its receiver before
// its payload moves. Neither figure was measured. A chunk is such a message; two of them are under
// way to a peer (NetworkEngine::kPostedBytes).
inline constexpr std::size_t kLeastDirectBytes = 64 * 1024;
inline constexpr std::size_t kDirectChunkBytes = 512 * 1024;

// Whether a wire can run it on memory that the host does not touch, once its copy was made: it has
// no scratch and no sums, at most one copy, which waits for nothing, and receives that can be
// placed whenever they come. Programs of collectives that only move data are so.
bool only_moves(const NetworkProgram& program);

// Of a transfer that was lowered for staging, and on all ranks alike: its data is moved directly
// if it is worth it.
void make_direct_if_worth(StagedTransfer& transfer);

}  // namespace tutti
