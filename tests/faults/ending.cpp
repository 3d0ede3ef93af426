#include "faults/ending.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <csignal>
#include <stdlib.h>
#include <string_view>
#include <thread>

namespace tutti::test {

std::string to_line(const Status& status) {
  return fmt::format("result {} {} {}", static_cast<int>(status.code()),
                     Ending::Clock::now().time_since_epoch().count(), status.to_string());
}

Ending from_line(const std::string& line) {
  Ending result;
  const char* const end = line.data() + line.size();
  int code = 0;
  Ending::Clock::rep time = 0;
  auto at = std::from_chars(line.data() + std::string_view("result ").size(), end, code).ptr;
  at = std::from_chars(at + 1, end, time).ptr;
  result.code = static_cast<StatusCode>(code);
  result.at = Ending::Clock::time_point(Ending::Clock::duration(time));
  result.text = std::string(at, end);
  return result;
}

const std::string* result_line(const Children::Child& child) {
  for (const std::string& line : child.lines) {
    if (line.starts_with("result ")) return &line;
  }
  return nullptr;
}

std::chrono::milliseconds slack() {
  constexpr double kSlackMs = 2000;
  double load = 0;
  if (::getloadavg(&load, 1) != 1) load = 1;
  const double crowding = load / std::max(1u, std::thread::hardware_concurrency());
  return std::chrono::milliseconds(static_cast<int>(kSlackMs * std::max(1.0, crowding)));
}

namespace {

// Written by a signal handler, read by any thread.
std::atomic<bool> known = false;
static_assert(std::atomic<bool>::is_always_lock_free);

}  // namespace

void listen_for_the_fate() {
  std::signal(SIGUSR1, [](int) { known = true; });
}

bool fate_is_known() { return known; }

HurryAfterTheFate::HurryAfterTheFate(Communicator& group)
    : thread_([&group](const std::stop_token& over) {
        while (!fate_is_known() && !over.stop_requested()) {
          std::this_thread::sleep_for(std::chrono::milliseconds(2));
        }
        if (fate_is_known()) (void)group.set_timeout(kShort);
      }) {}

}  // namespace tutti::test
