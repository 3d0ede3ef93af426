// Reads the fields of one entry of a tuning table. It trusts nothing: a file may have been written
// by hand.
#pragma once

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "tutti/status.hpp"

namespace tutti {

// The first failure stays, later reads do nothing.
class TableFields {
 public:
  using Json = nlohmann::ordered_json;

  // Any other field than these is a failure.
  TableFields(const Json& json, std::span<const std::string_view> known) : json_(json) {
    for (const auto& [name, value] : json.items()) {
      if (std::ranges::find(known, name) == known.end()) fail(name, "is not a field of an entry");
    }
  }

  const Status& status() const { return status_; }
  void fail(std::string_view field, std::string_view text) {
    if (!status_.is_ok()) return;
    status_ = {StatusCode::kInvalidArgument, fmt::format("field '{}' {}", field, text)};
  }

  bool has(const char* field) const { return json_.find(field) != json_.end(); }

  // Absent: empty where it is optional, else a failure.
  std::string text(const char* field, bool optional = false) {
    const Json* value = find(field, optional);
    if (value == nullptr) return {};
    if (!value->is_string()) {
      fail(field, "must be a text");
      return {};
    }
    const auto result = value->get<std::string>();
    if (result.empty() && !optional) fail(field, "must not be empty");
    return result;
  }

  template <class T>
  T integer(const char* field, std::uint64_t least, std::uint64_t most, bool optional = false) {
    const Json* value = find(field, optional);
    if (value == nullptr) return 0;
    if (!value->is_number_unsigned() || value->get<std::uint64_t>() < least ||
        value->get<std::uint64_t>() > most) {
      fail(field,
           fmt::format("must be an integer from {} to {}, and is {}", least, most, shown(*value)));
      return 0;
    }
    return static_cast<T>(value->get<std::uint64_t>());
  }

  bool boolean(const char* field) {
    const Json* value = find(field, false);
    if (value == nullptr) return false;
    if (!value->is_boolean()) {
      fail(field, fmt::format("must be true or false, and is {}", shown(*value)));
      return false;
    }
    return value->get<bool>();
  }

  double microseconds(const char* field, bool optional = false) {
    const Json* value = find(field, optional);
    if (value == nullptr) return 0;
    if (!value->is_number() || !(value->get<double>() >= 0) ||
        !std::isfinite(value->get<double>())) {
      fail(field, fmt::format("must be a number of microseconds, and is {}", shown(*value)));
      return 0;
    }
    return value->get<double>();
  }

  // A name that `parse` knows.
  template <class T>
  T name(const char* field, Result<T> (*parse)(std::string_view), T otherwise) {
    const std::string value = text(field);
    if (!status_.is_ok()) return otherwise;
    const Result<T> parsed = parse(value);
    if (parsed.is_ok()) return *parsed;
    fail(field, "holds an " + parsed.status().message());
    return otherwise;
  }

 private:
  const Json* find(const char* field, bool optional) {
    const auto found = json_.find(field);
    if (found != json_.end()) return &*found;
    if (!optional) fail(field, "is missing");
    return nullptr;
  }

  // A list within lists within lists is not printed: however deep it is, it is one wrong value.
  static std::string shown(const Json& value) {
    return value.is_structured() ? fmt::format("an {}", value.type_name()) : value.dump();
  }

  const Json& json_;
  Status status_;
};

}  // namespace tutti
