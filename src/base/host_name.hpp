// What this machine calls itself.
#pragma once

#include <string>

namespace tutti {

std::string host_name();  // "localhost" where the system has none

}  // namespace tutti
