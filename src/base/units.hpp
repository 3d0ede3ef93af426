// Sizes with units, and their text: "64K", "1M", "4 MiB" are powers of 1024.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tutti/status.hpp"

namespace tutti {

// No buffer is longer: addresses have no more bits. Sums and roundings of such sizes fit in 64.
inline constexpr std::size_t kMostBytes = std::size_t{1} << 57;

inline constexpr std::size_t KiB = 1024;
inline constexpr std::size_t MiB = 1024 * KiB;
inline constexpr std::size_t GiB = 1024 * MiB;

Result<std::size_t> parse_bytes(std::string_view text);  // "1K" "64KiB" "0" "1.5M"; no negatives
std::string format_bytes(std::size_t bytes);             // "64K", "1M", "1000" - exact, parseable

constexpr std::size_t ceil_div(std::size_t a, std::size_t b) { return (a + b - 1) / b; }
constexpr std::size_t round_up(std::size_t a, std::size_t to) { return ceil_div(a, to) * to; }

}  // namespace tutti
