#include "base/units.hpp"

#include <fmt/core.h>

#include <array>
#include <charconv>
#include <cmath>

#include "base/trim.hpp"

namespace tutti {
namespace {

struct Unit {
  char letter;
  std::size_t bytes;
};
constexpr std::array<Unit, 4> kUnits = {{{'T', 1024 * GiB}, {'G', GiB}, {'M', MiB}, {'K', KiB}}};

Status malformed(std::string_view text) {
  return {StatusCode::kInvalidArgument,
          fmt::format("'{}' is not a size; write bytes or a unit of 1024, such as 4096, 64K, 1.5M "
                      "or 2GiB",
                      text)};
}

// "", "B", "K", "KB", "KiB" and so on; 0 for anything else.
std::size_t unit_bytes(std::string_view suffix) {
  if (suffix.empty() || suffix == "B") return 1;
  const char letter = suffix.front() == 'k' ? 'K' : suffix.front();
  const std::string_view rest = suffix.substr(1);
  if (!rest.empty() && rest != "B" && rest != "iB") return 0;
  for (const Unit& unit : kUnits) {
    if (unit.letter == letter) return unit.bytes;
  }
  return 0;
}

}  // namespace

Result<std::size_t> parse_bytes(std::string_view text) {
  const std::string_view trimmed = trim(text);
  const std::size_t digits = trimmed.find_first_not_of("0123456789.");
  const std::string_view number = trimmed.substr(0, digits);
  const std::size_t unit =
      digits == std::string_view::npos ? 1 : unit_bytes(trim(trimmed.substr(digits)));
  if (number.empty() || unit == 0) return malformed(text);
  const Status too_large(StatusCode::kInvalidArgument,
                         fmt::format("'{}' is more than 64 bits hold", text));

  const char* end = number.data() + number.size();
  std::size_t whole = 0;
  const auto integer = std::from_chars(number.data(), end, whole);
  if (integer.ec == std::errc::result_out_of_range) return too_large;
  if (integer.ec == std::errc{} && integer.ptr == end) {
    if (whole > SIZE_MAX / unit) return too_large;
    return whole * unit;
  }
  double fraction = 0;
  const auto decimal = std::from_chars(number.data(), end, fraction, std::chars_format::fixed);
  if (decimal.ec != std::errc{} || decimal.ptr != end) return malformed(text);
  const double bytes = fraction * static_cast<double>(unit);
  if (bytes != std::floor(bytes)) return malformed(text);
  if (bytes >= 0x1p64) return too_large;
  return static_cast<std::size_t>(bytes);
}

std::string format_bytes(std::size_t bytes) {
  for (const Unit& unit : kUnits) {
    if (bytes != 0 && bytes % unit.bytes == 0) {
      return fmt::format("{}{}", bytes / unit.bytes, unit.letter);
    }
  }
  return fmt::format("{}", bytes);
}

}  // namespace tutti
