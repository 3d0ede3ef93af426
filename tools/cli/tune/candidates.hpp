// What is tried at one size.
#pragma once

#include <cstddef>
#include <vector>

#include "algorithms/catalogue.hpp"
#include "bench/configuration.hpp"

namespace tutti::cli {

// The row as it would run by itself, then variations of blocks and threads (CUDA) and of chunks
// (rows that have some). Each once; none where the row has no entry for that many ranks. Messages
// between pairs run in the grid that their group needs.
std::vector<Configuration> candidates_for(const Algorithm& row, const Extent& extent,
                                          Backend backend);

}  // namespace tutti::cli
