#include "base/printable.hpp"

#include <fmt/core.h>

namespace tutti {
namespace {

// Escape sequences begin with a control character below 0x20, or with one from 0x80 to 0x9f. Bytes
// of that second range are also what UTF-8 continues characters with.
bool is_control(unsigned char byte, bool continues) {
  return byte < 0x20 || byte == 0x7f || (byte >= 0x80 && byte < 0xa0 && !continues);
}

std::string escaped(unsigned char byte) {
  switch (byte) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return fmt::format("\\x{:02x}", byte);
  }
}

// How many bytes follow `first` in UTF-8. 0xc2 leads to the control characters from 0x80 to 0x9f.
int followers(unsigned char first) {
  if (first > 0xc2 && first < 0xe0) return 1;
  if (first >= 0xe0 && first < 0xf0) return 2;
  return first >= 0xf0 && first < 0xf5 ? 3 : 0;
}

}  // namespace

std::string printable(std::string_view text, std::string_view kept) {
  std::string result;
  int open = 0;  // bytes that the character under way still takes
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool continues = open > 0 && byte >= 0x80 && byte < 0xc0;
    open = continues ? open - 1 : followers(byte);
    if (is_control(byte, continues) && kept.find(c) == std::string_view::npos) {
      result += escaped(byte);
    } else {
      result += c;
    }
  }
  return result;
}

}  // namespace tutti
