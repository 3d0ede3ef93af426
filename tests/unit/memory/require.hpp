// What a rank's life needs where it cannot assert: in a process or on a thread of its own.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "base/deadline.hpp"
#include "support/patience.hpp"
#include "tutti/status.hpp"

namespace tutti::test {

inline Deadline soon() { return Deadline(kPatience); }

inline void require(bool condition, std::string_view what) {
  if (!condition) throw std::runtime_error(std::string(what));
}
inline void require(const Status& status, std::string_view what) {
  if (!status.is_ok()) throw std::runtime_error(fmt::format("{}: {}", what, status.to_string()));
}
template <class T>
T require(Result<T> result, std::string_view what) {
  require(result.status(), what);
  return *std::move(result);
}

}  // namespace tutti::test
