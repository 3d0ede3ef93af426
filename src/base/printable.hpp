// Text that says nothing to a terminal but what it shows.
#pragma once

#include <string>
#include <string_view>

namespace tutti {

// Control characters as "\n", "\t" or "\x1b"; those in `kept` stay. UTF-8 stays as it is, but for
// its control characters.
std::string printable(std::string_view text, std::string_view kept = "");

}  // namespace tutti
