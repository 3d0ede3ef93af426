#include "base/process_environment.hpp"

#include <unistd.h>

namespace tutti {

// There is no list at all after clearenv().
std::vector<std::string> process_environment() {
  std::vector<std::string> environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    environment.emplace_back(*entry);
  }
  return environment;
}

}  // namespace tutti
