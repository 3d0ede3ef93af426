// What the command says to the person who typed it. Control characters of names and of texts that
// others wrote are escaped, so that they can neither steer the terminal nor look like other lines.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "base/printable.hpp"

namespace tutti::cli {

// Ignores errors, so that a command still writes its files if nobody reads its output. At the end
// main() reports if standard output was lost.
inline void tell_as_is(std::FILE* to, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), to);
}

// Any number of lines.
template <class... Args>
void tell(std::FILE* to, fmt::format_string<Args...> text, Args&&... args) {
  tell_as_is(to, printable(fmt::format(text, std::forward<Args>(args)...), "\n"));
}

// One line, whatever is in `args`; its end is added.
template <class... Args>
void tell_line(std::FILE* to, fmt::format_string<Args...> text, Args&&... args) {
  tell_as_is(to, printable(fmt::format(text, std::forward<Args>(args)...)) + "\n");
}

}  // namespace tutti::cli
