// How text looks where it is printed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

namespace tutti::cli {

enum class Ink : std::uint8_t { kBold, kRed };

struct Look {
  bool colours = false;
  std::size_t width = 110;  // columns that a table may take

  std::string paint(Ink ink, const std::string& text) const;  // `text` where there are no colours
};

// Of a terminal: its width where that is more, and colours unless NO_COLOR is set or TERM is dumb.
Look look_of(std::FILE* stream);

}  // namespace tutti::cli
