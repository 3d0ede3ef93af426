// Faults of ranks that are nodes: what a network does, and what its ranks do to each other.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tutti::test {

struct NetworkFault {
  std::string_view name;
  // Empty where every rank got the error it should, in time and in full, and nothing is left.
  std::string (*run)();
};
// Once become_nodes() has been called.
std::span<const NetworkFault> network_faults();

}  // namespace tutti::test
