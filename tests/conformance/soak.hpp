// A long random series of operations in one group: sizes, types, reductions, rows, offsets and
// buffers in turn, every result checked bit for bit on every rank.
#pragma once

#include <string>

#include "support/group.hpp"

namespace tutti::test {

// Empty if every operation was right.
std::string run_soak(const GroupSpec& spec, int operations, unsigned seed);

}  // namespace tutti::test
