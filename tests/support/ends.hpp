// Numbers at the ends of their types, as files may hold them.
#pragma once

#include <nlohmann/json.hpp>

#include <array>
#include <cstdint>
#include <functional>

namespace tutti::test {

inline const std::array kEnds = {
    nlohmann::json(0),
    nlohmann::json(-1),
    nlohmann::json(INT32_MIN),
    nlohmann::json(INT32_MAX),
    nlohmann::json(std::uint64_t{1} << 32),
    nlohmann::json(INT64_MIN),
    nlohmann::json(INT64_MAX),
    nlohmann::json(UINT64_MAX),
    nlohmann::json(0.5),
    nlohmann::json(5e-324),
    nlohmann::json(1e-300),
    nlohmann::json(1e15),
    nlohmann::json(1.7e308),
    nlohmann::json(-1.7e308),
    nlohmann::json(nullptr),  // what a NaN or an infinity is written as
    nlohmann::json(true),
    nlohmann::json("1"),
};

// Calls see(document, pointer) for `document` with each of its numbers at each end, one at a time.
// Returns how many numbers there are.
inline int at_all_ends(const nlohmann::json& document,
                       const std::function<void(const nlohmann::json&, const std::string&)>& see) {
  int numbers = 0;
  const nlohmann::json leaves = document.flatten();
  for (const auto& [pointer, value] : leaves.items()) {
    if (!value.is_number()) continue;
    ++numbers;
    for (const nlohmann::json& end : kEnds) {
      nlohmann::json changed = document;
      changed[nlohmann::json::json_pointer(pointer)] = end;
      see(changed, pointer + " = " + end.dump());
    }
  }
  return numbers;
}

}  // namespace tutti::test
