// What the command says to the person who typed it.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

namespace tutti::cli {

// Never fails: a command goes on without its reader, and main() tells in the end what of its output
// could not be written.
template <class... Args>
void tell(std::FILE* to, fmt::format_string<Args...> text, Args&&... args) {
  const std::string line = fmt::format(text, std::forward<Args>(args)...);
  std::fwrite(line.data(), 1, line.size(), to);
}

}  // namespace tutti::cli
