// The environment variables of this process.
#pragma once

#include <string>
#include <vector>

namespace tutti {

std::vector<std::string> process_environment();  // "NAME=value"

}  // namespace tutti
