// Groups of threads on the host, with all the time they need.
#pragma once

#include <vector>

#include "support/check.hpp"
#include "support/patience.hpp"
#include "tutti/tutti.hpp"

namespace tutti::test {

inline std::vector<Communicator> groups_of(int ranks) {
  return take(
      Communicator::create_in_process(ranks, {.backend = Backend::kHost, .timeout = kPatience}));
}

}  // namespace tutti::test
