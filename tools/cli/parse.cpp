#include "parse.hpp"

#include <fmt/core.h>

#include <array>
#include <charconv>

#include "base/names.hpp"
#include "base/units.hpp"

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

Result<bool> parse_switch(std::string_view option, std::string_view text) {
  constexpr std::array<Name<bool>, 2> kNames = {{{true, "on"}, {false, "off"}}};
  constexpr std::array<Name<bool>, 2> kOfNcclTests = {{{true, "1"}, {false, "0"}}};
  return parse_name<bool>(kNames, kOfNcclTests, option, text);
}

Result<std::size_t> parse_size(std::string_view option, std::string_view text) {
  auto size = parse_bytes(text);
  if (!size.is_ok()) return size.status().with_context(option);
  if (*size > kMostMessageBytes) {
    return wrong(fmt::format("{} {}: at most {}", option, text, format_bytes(kMostMessageBytes)));
  }
  return size;
}

Result<std::size_t> elements_of(int rows, int hidden, DataType dtype) {
  const auto elements = static_cast<std::size_t>(rows) * static_cast<std::size_t>(hidden);
  if (elements <= kMostMessageBytes / size_of(dtype)) return elements;
  return wrong(fmt::format("--rows {} --hidden {}: a message is at most {}", rows, hidden,
                           format_bytes(kMostMessageBytes)));
}

}  // namespace tutti::cli
