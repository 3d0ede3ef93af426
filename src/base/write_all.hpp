// All of a text to a descriptor, in as many writes as it takes.
#pragma once

#include <string_view>

namespace tutti {

// 0, or the errno of the write that failed. Goes on after signals.
int write_all(int fd, std::string_view text);

}  // namespace tutti
