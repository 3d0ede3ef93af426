// What the command says to the person who typed it.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

namespace tutti::cli {

// Ignores errors, so that a command still writes its files if nobody reads its output. At the end
// main() reports if standard output was lost.
template <class... Args>
void tell(std::FILE* to, fmt::format_string<Args...> text, Args&&... args) {
  const std::string line = fmt::format(text, std::forward<Args>(args)...);
  std::fwrite(line.data(), 1, line.size(), to);
}

}  // namespace tutti::cli
