#include "parse.hpp"

#include <fmt/core.h>

#include <charconv>

namespace tutti::cli {
std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t comma = text.find(',');
    parts.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

Result<int> parse_int(std::string_view option, std::string_view text, IntRange range) {
  long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return wrong(fmt::format("{}: '{}' is not a whole number", option, text));
  }
  if (value < range.least || value > range.most) {
    return wrong(
        fmt::format("{}: {} is not between {} and {}", option, value, range.least, range.most));
  }
  return static_cast<int>(value);
}

}  // namespace tutti::cli
