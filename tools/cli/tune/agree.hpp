// What the decisions of all ranks depend on.
#pragma once

#include <chrono>
#include <vector>

#include "tutti/communicator.hpp"

namespace tutti::cli {

// Collective. Element by element the largest value of all ranks. Among the hosts: no result of what
// is measured may enter.
Result<std::vector<double>> most_of_ranks(Communicator& communicator,
                                          const std::vector<double>& mine,
                                          std::chrono::milliseconds timeout);

}  // namespace tutti::cli
