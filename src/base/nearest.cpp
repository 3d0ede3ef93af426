#include "base/nearest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace tutti {
namespace {

// Letters are left out more often than others are typed in their place.
constexpr std::size_t kMissing = 1, kSwapped = 1, kWrong = 2, kTooMany = 3;
constexpr std::size_t kMostCost = 6;  // of names that differ by more, none was meant
constexpr std::size_t kLeastStart = 3;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same(char a, char b) { return lower(a) == lower(b); }

bool starts_with(std::string_view name, std::string_view start) {
  return name.size() >= start.size() && std::equal(start.begin(), start.end(), name.begin(), same);
}

// What it takes to make `name` of `text`: an edit distance with swaps of neighbours.
std::size_t cost_of(std::string_view text, std::string_view name) {
  std::vector<std::size_t> before, above(name.size() + 1), row(name.size() + 1);
  for (std::size_t j = 0; j <= name.size(); ++j) above[j] = j * kMissing;
  for (std::size_t i = 1; i <= text.size(); ++i) {
    row[0] = i * kTooMany;
    for (std::size_t j = 1; j <= name.size(); ++j) {
      const std::size_t typed = above[j - 1] + (same(text[i - 1], name[j - 1]) ? 0 : kWrong);
      row[j] = std::min({typed, above[j] + kTooMany, row[j - 1] + kMissing});
      const bool swapped =
          i > 1 && j > 1 && same(text[i - 1], name[j - 2]) && same(text[i - 2], name[j - 1]);
      if (swapped) row[j] = std::min(row[j], before[j - 2] + kSwapped);
    }
    before = std::exchange(above, row);
  }
  return above[name.size()];
}

}  // namespace

std::string_view nearest(std::string_view text, std::span<const std::string_view> known) {
  std::string_view found;
  std::size_t least = std::min(text.size(), kMostCost) + 1;
  for (const std::string_view name : known) {
    std::size_t cost = least;
    if (text.size() >= kLeastStart && starts_with(name, text)) {
      cost = kMissing;
    } else if (text.size() <= name.size() + kMostCost && name.size() <= text.size() + kMostCost) {
      cost = cost_of(text, name);  // however long a text is, it costs nothing
    }
    if (cost < least) found = name, least = cost;
  }
  return found;
}

std::string alternatives(std::string_view text, std::span<const std::string_view> known) {
  const std::string_view meant = nearest(text, known);
  const std::string all = fmt::format("{}", fmt::join(known, ", "));
  if (meant.empty()) return "; known are " + all;
  return fmt::format("; did you mean '{}'? Known are {}", meant, all);
}

}  // namespace tutti
