// What a group says of its failure, part of which comes from other ranks and a little later.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <thread>

#include "support/patience.hpp"
#include "tutti/communicator.hpp"

namespace tutti::test {

// Its status as text, once that holds `part`; or as it is in the end.
inline std::string told(const Communicator& group, std::string_view part) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    std::string text = group.status().to_string();
    if (text.find(part) != std::string::npos || std::chrono::steady_clock::now() >= end)
      return text;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace tutti::test
