// What a rank of a fault test says at its end, and what the parent makes of it.
#pragma once

#include <chrono>
#include <string>
#include <thread>

#include "support/children.hpp"
#include "tutti/communicator.hpp"
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
// Whether limits are looked at: for a machine that has nothing else to do. What ended a wait shows
// in the error anyway.
inline bool times_count = false;

// The deadline of a wait for who is stopped, from the moment that it is.
inline constexpr std::chrono::milliseconds kShort{300};

// The parent's word, by SIGUSR1, that the victim has met its fate. To be listened for before ranks
// are forked.
void listen_for_the_fate();
bool fate_is_known();
// On a thread of its own: once the fate is known, the group's waits end soon.
class HurryAfterTheFate {
 public:
  explicit HurryAfterTheFate(Communicator& group);

 private:
  std::jthread thread_;
};

}  // namespace tutti::test
