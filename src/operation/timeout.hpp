// How long a wait may take, and who has set that.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace tutti {

enum class TimeoutSource : std::uint8_t {
  kDefault,
  kSetting,  // TUTTI_TIMEOUT_MS
  kCreation,
  kSetTimeout,
  kCall,
};

struct Timeout {
  std::chrono::milliseconds value{0};
  TimeoutSource source = TimeoutSource::kDefault;
};

// "timeout 1500 ms from CommunicatorOptions::timeout"
std::string to_string(const Timeout& timeout);

}  // namespace tutti
