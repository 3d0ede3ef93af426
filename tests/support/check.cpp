#include "support/check.hpp"

namespace tutti::test {

void fail(std::string_view text, std::source_location where) {
  const std::string_view file = where.file_name();
  throw Failure(fmt::format("{}:{}: {}", file.substr(file.rfind('/') + 1), where.line(), text));
}

void require_failure(const Status& status, StatusCode code,
                     std::initializer_list<std::string_view> parts, std::source_location where) {
  if (status.code() != code) {
    fail(fmt::format("expected {}, got {}", to_string(code), status.to_string()), where);
  }
  for (const std::string_view part : parts) {
    if (status.message().find(part) != std::string::npos) continue;
    fail(fmt::format("'{}' is missing in: {}", part, status.message()), where);
  }
}

}  // namespace tutti::test
