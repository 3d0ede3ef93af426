// How test code says that something is wrong: it throws, and whoever runs the rank reports the text
// with the rank's number.
#pragma once

#include <fmt/format.h>

#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "tutti/status.hpp"

namespace tutti::test {

struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[noreturn]] void fail(std::string_view text,
                       std::source_location where = std::source_location::current());

inline void require(bool condition, std::string_view text,
                    std::source_location where = std::source_location::current()) {
  if (!condition) fail(text, where);
}

inline void require_ok(const Status& status,
                       std::source_location where = std::source_location::current()) {
  if (!status.is_ok()) fail(status.to_string(), where);
}

// A failure of this kind whose text holds every one of `parts`.
void require_failure(const Status& status, StatusCode code,
                     std::initializer_list<std::string_view> parts = {},
                     std::source_location where = std::source_location::current());

// The value of a Result that has one.
template <class T>
T take(Result<T> result, std::source_location where = std::source_location::current()) {
  if (!result.is_ok()) fail(result.status().to_string(), where);
  return std::move(result).value();
}

}  // namespace tutti::test
