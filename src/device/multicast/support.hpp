// Whether NVLink multicast may be used: a switch that is misused can take the GPUs of a whole host
// out of service. So it takes a build that has it, and a user who wants it.
#pragma once

#include <functional>
#include <string>

namespace tutti {

struct MulticastSettings {
  bool built = false;                                     // with TUTTI_MULTICAST
  bool wanted = false;                                    // the setting of that name
  std::function<const char*(const char* name)> variable;  // of the environment; null where unset
};

// Empty where these settings allow it; GPUs must have it as well.
std::string why_no_multicast(const MulticastSettings& settings);

// Of this build and process.
std::string why_no_multicast();

}  // namespace tutti
