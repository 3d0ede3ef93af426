// Enumerators and their names: one table per enumeration, for printing and for parsing.
#pragma once

#include <fmt/core.h>

#include <span>
#include <string_view>
#include <vector>

#include "base/nearest.hpp"
#include "tutti/status.hpp"

namespace tutti {

template <class E>
struct Name {
  E value;
  std::string_view name;
};

template <class E>
std::string_view name_of(std::span<const Name<E>> names, E value) {
  for (const Name<E>& entry : names) {
    if (entry.value == value) return entry.name;
  }
  return "?";
}

// `names` first, then `aliases`. The error lists `names`; `what` says what was looked for.
template <class E>
Result<E> parse_name(std::span<const Name<E>> names, std::span<const Name<E>> aliases,
                     std::string_view what, std::string_view text) {
  for (const auto& list : {names, aliases}) {
    for (const Name<E>& entry : list) {
      if (entry.name == text) return entry.value;
    }
  }
  std::vector<std::string_view> known;
  for (const Name<E>& entry : names) known.push_back(entry.name);
  return Status(StatusCode::kInvalidArgument,
                fmt::format("unknown {} '{}'{}", what, text, alternatives(text, known)));
}

}  // namespace tutti
