// Faults that are no signal: memory that runs out, strangers at the door, ranks that disagree.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tutti/types.hpp"

namespace tutti::test {

struct Misfortune {
  std::string_view name;
  bool host_only;
  // Empty where the group does what it should and nothing is left.
  std::string (*run)(Backend backend, int ranks);
};
std::span<const Misfortune> misfortunes();

}  // namespace tutti::test
