#include "bench/printers/look.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace tutti::cli {
namespace {

std::string_view setting(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

}  // namespace

std::string Look::paint(Ink ink, const std::string& text) const {
  if (!colours) return text;
  return fmt::format("\x1b[{}m{}\x1b[0m", ink == Ink::kBold ? 1 : 31, text);
}

Look look_of(std::FILE* stream) {
  Look look;
  const int descriptor = ::fileno(stream);
  if (::isatty(descriptor) != 1) return look;
  look.colours = setting("NO_COLOR").empty() && setting("TERM") != "dumb";
  winsize size = {};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) == 0) {
    look.width = std::max<std::size_t>(look.width, size.ws_col);
  }
  return look;
}

}  // namespace tutti::cli
