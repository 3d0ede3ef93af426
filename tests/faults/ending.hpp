// What a rank of a fault test says at its end, and what the parent makes of it.
#pragma once

#include <chrono>
#include <string>

#include "support/children.hpp"
#include "tutti/status.hpp"

namespace tutti::test {

struct Ending {
  using Clock = std::chrono::steady_clock;  // the same in every process of this host

  StatusCode code = StatusCode::kOk;
  Clock::time_point at;
  std::string text;
};

// "result <code> <time> <text>"
std::string to_line(const Status& status);
Ending from_line(const std::string& line);

// The child's such line, if it has said one.
const std::string* result_line(const Children::Child& child);

// To learn that a process has ended.
inline constexpr std::chrono::milliseconds kGoneLimit{1000};
// What is allowed beyond a limit: more on a machine with more to do than cores.
std::chrono::milliseconds slack();

}  // namespace tutti::test
