// What a group of ranks must be able to do and how it must fail, told once for both backends. Every
// rank runs the same function; it throws where something is not as it should be.
#pragma once

#include <chrono>
#include <span>
#include <string_view>

#include "support/group.hpp"

namespace tutti::test {

struct Scenario {
  std::string_view name;
  int min_ranks;
  std::chrono::milliseconds timeout;  // of the communicator
  void (*run)(Rank& rank);
  bool outlasts_a_deadline = false;  // of a second or more, where there are more than two ranks
};

std::span<const Scenario> working_scenarios();
std::span<const Scenario> failing_scenarios();
std::span<const Scenario> leaving_scenarios();

// Until the group has failed: what a rank sees that is in no operation.
Status wait_for_failure(Communicator& group);

// One thread drives all ranks of one process between group_start and group_end. Empty if it works.
std::string drive_all_ranks(Backend backend, int ranks);

}  // namespace tutti::test
